const PAUSES_MS = [250, 500, 1000, 2000, 5000];

/** How long to wait after so many failures in a row. Short at first: a restart takes a second. */
export function retryPause(failures: number): number {
  return PAUSES_MS[Math.min(Math.max(failures, 1), PAUSES_MS.length) - 1] ?? 5000;
}
