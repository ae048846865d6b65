/** What a daemon says with --v=2, line by line, and when. */
const LINE = /^[IWE]\d{4} (\d\d):(\d\d):(\d\d\.\d+) +\d+ [^\]]*\] "((?:[^"\\]|\\.)*)"(.*)$/;
const FIELD = / ([A-Za-z]+)=(?:"((?:[^"\\]|\\.)*)"|(\S+))/g;
const DAY_MS = 86_400_000;

export interface LogLine {
  /** As of `Date.now`. */
  readonly at: number;
  readonly message: string;
  readonly fields: Readonly<Record<string, string>>;
}

export class DaemonLog {
  readonly #lines: LogLine[] = [];
  readonly #waiting = new Set<() => void>();
  #rest = '';

  add(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const each of lines) {
      const line = parseLine(each, Date.now());
      if (line) this.#lines.push(line);
    }
    for (const look of this.#waiting) look();
  }

  all(message: string, family?: string): readonly LogLine[] {
    return this.#lines.filter(
      (line) => line.message === message && (family ?? line.fields['ipFamily']) === line.fields['ipFamily'],
    );
  }

  /** The first line for which this holds, said already or later. `undefined`: not in time. */
  first(holds: (line: LogLine) => boolean, withinMs: number): Promise<LogLine | undefined> {
    return new Promise((resolve) => {
      let looked = 0;
      const end = (line: LogLine | undefined): void => {
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve(line);
      };
      const timer = setTimeout(() => end(undefined), withinMs);
      const look = (): void => {
        for (; looked < this.#lines.length; looked++) {
          const line = this.#lines[looked];
          if (line && holds(line)) return end(line);
        }
      };
      this.#waiting.add(look);
      look();
    });
  }
}

/** `undefined`: a line of another kind. `now` says which day it is. */
export function parseLine(text: string, now: number): LogLine | undefined {
  const [, hours, minutes, seconds, message, rest = ''] = LINE.exec(text) ?? [];
  if (message === undefined) return undefined;
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  const at = midnight + (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1000;
  const fields = [...rest.matchAll(FIELD)].map(([, name = '', quoted, plain]) => [
    name,
    quoted ?? plain ?? '',
  ]);
  // Just after midnight a line may be of the day before.
  return { at: at > now + DAY_MS / 2 ? at - DAY_MS : at, message, fields: Object.fromEntries(fields) };
}

/** `12.3ms` */
export function elapsedMs({ fields }: LogLine): number {
  return Number((fields['elapsed'] ?? fields['milliseconds'] ?? '').replace(/ms$/, ''));
}
