/** Where on a server a transport finds it. */

/**
 * @param {string | URL} server its page's address, or that of `path` itself
 * @param {"ws" | "http"} scheme what the transport speaks; TLS stays as it is in `server`
 * @param {string} path of the endpoint
 * @returns {string} the endpoint's address; a query is kept only where `server` names the endpoint
 */
export function endpoint(server, scheme, path) {
  const address = new URL(server);
  address.protocol = address.protocol.replace(scheme === "ws" ? "http" : "ws", scheme);
  if (!address.pathname.endsWith(path)) {
    address.pathname = path;
    address.search = "";
  }
  address.hash = "";
  return address.href;
}
