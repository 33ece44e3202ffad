/** The interface's page: the routes, as /openapi.json describes them. */

const METHODS = ["get", "post", "put", "patch", "delete"];
const BOUNDS = {
  minimum: (n) => `at least ${n}`,
  exclusiveMinimum: (n) => `over ${n}`,
  maximum: (n) => `at most ${n}`,
  exclusiveMaximum: (n) => `under ${n}`,
  minLength: (n) => `at least ${n} characters`.replace("at least 1 characters", "not empty"),
  maxLength: (n) => `at most ${n} characters`,
};

function element(name, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
}

const code = (text) => element("code", {}, text);

/** Text in which ``…`` and `…` are code. */
function prose(text) {
  return text.split(/`{1,2}([^`]+)`{1,2}/).map((part, i) => (i % 2 ? code(part) : part));
}

function resolved(schema, api) {
  const name = schema?.$ref?.split("/").at(-1);
  return name ? api.components.schemas[name] : (schema ?? {});
}

/** A schema in a few words: `string or null`, `list of Voice`. */
function typeOf(schema, api) {
  if (schema.$ref) return resolved(schema, api).title;
  if (schema.anyOf) return schema.anyOf.map((item) => typeOf(item, api)).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((item) => JSON.stringify(item)).join(", ");
  if (schema.type === "array") return `list of ${typeOf(schema.items ?? {}, api)}`;
  const bounds = Object.entries(BOUNDS)
    .filter(([key]) => schema[key] !== undefined)
    .map(([key, tell]) => tell(schema[key]));
  return [schema.format ?? schema.type ?? "anything", ...bounds].join(", ");
}

function table(heads, rows) {
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  const body = rows.map(([first, ...rest]) =>
    element("tr", {}, element("th", { scope: "row" }, first), ...rest.map((cell) => element("td", {}, ...[cell].flat()))),
  );
  const made = element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
  return element("div", { className: "wide" }, made);
}

/** The fields of an object, and those of the objects in them. */
function fields(schema, api, seen = []) {
  const object = resolved(schema, api);
  const parts = [];
  if (object.description) parts.push(element("p", {}, ...prose(object.description)));
  if (object.properties) {
    const required = new Set(object.required);
    const rows = Object.entries(object.properties).map(([name, field]) => {
      const standard = field.default === undefined ? "" : `default ${JSON.stringify(field.default)}`;
      const told = [field.description, required.has(name) ? "Required." : standard].filter(Boolean).join(" ");
      return [code(name), typeOf(field, api), prose(told)];
    });
    parts.push(table(["field", "type", "meaning"], rows));
  }
  for (const inner of inside(object)) {
    if (seen.includes(inner.$ref)) continue;
    parts.push(element("h3", {}, resolved(inner, api).title), ...fields(inner, api, [...seen, inner.$ref]));
  }
  return parts;
}

/** The schemas with a name that the fields of `object` are made of. */
function inside(object) {
  const each = (schema) => (schema.$ref ? [schema] : [schema.items, ...(schema.anyOf ?? [])].filter(Boolean).flatMap(each));
  return Object.values(object.properties ?? {}).flatMap(each);
}

/** What a body of each media type holds. */
function content(media, api) {
  return Object.entries(media ?? {}).map(([type, { schema = {} }]) => {
    const parts = fields(schema, api);
    const held = parts.length ? "" : `: ${typeOf(schema, api)}`;
    return element("div", {}, element("p", {}, code(type), held), ...parts);
  });
}

function route(path, method, operation, api) {
  const parts = [];
  if (operation.parameters?.length) {
    const rows = operation.parameters.map((item) => [code(item.name), item.in, typeOf(item.schema ?? {}, api), prose(item.description ?? "")]);
    parts.push(element("h3", {}, "Parameters"), table(["name", "in", "type", "meaning"], rows));
  }
  if (operation.requestBody) parts.push(element("h3", {}, "Request body"), ...content(operation.requestBody.content, api));
  const answers = Object.entries(operation.responses);
  const rows = answers.map(([status, answer]) => [status, answer.description, Object.keys(answer.content ?? {}).join(", ")]);
  parts.push(element("h3", {}, "Answers"), table(["status", "meaning", "body"], rows));
  for (const [status, answer] of answers) {
    if (status.startsWith("2")) parts.push(...content(answer.content, api));
  }
  const told = element("span", {}, ...prose(operation.description ?? operation.summary ?? ""));
  const head = element("summary", {}, element("b", {}, method.toUpperCase()), code(path), told);
  return element("details", { className: "route" }, head, element("div", {}, ...parts));
}

async function show() {
  const answer = await fetch("/openapi.json");
  if (!answer.ok) throw new Error(`/openapi.json: ${answer.status}`);
  const api = await answer.json();
  document.querySelector("#version").textContent = `version ${api.info.version}`;
  const routes = Object.entries(api.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => route(path, method, item[method], api)),
  );
  const refusal = element("details", { className: "route" });
  refusal.append(
    element("summary", {}, element("b", {}, "ERROR"), element("span", {}, "the body of every answer that is not a success")),
    element("div", {}, ...fields({ $ref: "#/components/schemas/ErrorBody" }, api)),
  );
  document.querySelector("#routes").append(...routes, refusal);
}

const note = document.querySelector("#note");
try {
  await show();
  note.textContent = "";
} catch (error) {
  note.textContent = `The routes cannot be read: ${error.message}`;
}
