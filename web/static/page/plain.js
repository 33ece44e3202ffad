/** Errors and states in plain words. */

const CLOSED = { 1012: "The server is restarting.", 1001: "The server is going away." };

const CODES = {
  overloaded: "The server is busy: every voice is in use.",
  draining: "The server is restarting.",
  engine_failure: "The voice had a problem and stopped.",
  rate_limited: "That was a little too much at once.",
  too_large: "This text is too long for one go.",
  slow_consumer: "This device could not keep up with the sound.",
  ttfp_budget: "The voice did not begin in time.",
  unauthorized: "This server asks for a key that the page does not have.",
  not_found: "The server does not know this voice.",
  protocol_violation: "The server said something this page does not understand.",
  stream_truncated: "The connection to the server was lost.",
  connect_failed: "The server cannot be reached.",
  audio_unavailable: "This browser cannot play streamed sound; a current one can.",
};

const NOT_READY = {
  starting: "The server is loading its voice.",
  restarting: "The voice is being restarted.",
  draining: "The server is restarting.",
  stopped: "The voice is switched off.",
  failed: "The server could not load its voice.",
};

/** One sentence about an error. `code` decides; what the server wrote is shown where nothing better is known. */
export function sentence(error) {
  return CLOSED[error.closeCode] ?? CODES[error.code] ?? `Something went wrong: ${error.message}`;
}

/** Why there is no connection, as far as the server tells; null if it does not. */
export async function whyNot() {
  try {
    const answer = await fetch("/readyz", { cache: "no-store", signal: AbortSignal.timeout(3000) });
    const { status } = await answer.json();
    return NOT_READY[status] ?? null;
  } catch {
    return null; // nobody there, or no answer of ours: the caller says that
  }
}
