/** setTimeout ends longer delays immediately. */
const longestDelay = 2 ** 31 - 1;

/** Calls a function after some milliseconds, unless the timer is cleared. */
export function after(milliseconds: number, call: () => void): ReturnType<typeof setTimeout> {
  return setTimeout(call, Math.min(milliseconds, longestDelay));
}

/** Waits. */
export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => after(milliseconds, resolve));
}
