/** A language model's way of writing: a token at a time, not quite evenly. */

const TOKENS = /\s*[\p{L}\p{N}]{1,6}|\s*[^\s\p{L}\p{N}]|\s+/gu;
const TOKENS_PER_WORD = 1.35;

/**
 * Give `text` to `onpiece` token by token until it is over or `signal` aborts. `rate()` is in words a second, and
 * asked before every token. Resolves with true when all was written.
 */
export async function write(text, { rate, signal, onpiece }) {
  let due = performance.now();
  for (const [index, token] of [...text.match(TOKENS)].entries()) {
    // A fixed unevenness: the same text takes the same time twice.
    const unevenness = 0.6 + 0.8 * Math.abs(Math.sin(index * 12.9898));
    due = Math.max(due, performance.now() - 200) + (1000 / (rate() * TOKENS_PER_WORD)) * unevenness;
    await pause(due - performance.now(), signal);
    if (signal.aborted) return false;
    onpiece(token);
  }
  return true;
}

function pause(ms, signal) {
  return new Promise((resolve) => {
    if (signal.aborted || ms <= 0) {
      resolve();
      return;
    }
    const stop = () => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}
