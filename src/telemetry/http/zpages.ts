/** `/flagz` and `/statusz`: pages for people. */

export interface Status {
  readonly startedAt: Date;
  readonly now: Date;
  readonly version: string;
  /** Anything else worth a line. */
  readonly more?: Iterable<readonly [name: string, value: string]>;
}

const WARNING = 'This page is for people; its form may change at any time.';

export function flagzText(flags: Iterable<readonly [name: string, value: string]>): string {
  const lines = [...flags].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => `${name}=${value}\n`);
  return `\nkube-proxy flagz\n${WARNING}\n\n${lines.join('')}`;
}

export function statuszText({ startedAt, now, version, more = [] }: Status): string {
  const lines: readonly (readonly [string, string])[] = [
    ['Started', startedAt.toUTCString()],
    ['Up', upTime(now.getTime() - startedAt.getTime())],
    ['Node.js version', process.version],
    ['Binary version', `junction ${version}`],
    ...more,
  ];
  return `\nkube-proxy statusz\n${WARNING}\n\n${lines.map(([name, value]) => `${name}: ${value}\n`).join('')}`;
}

function upTime(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${Math.floor(seconds / 3600)} hr ${two(Math.floor(seconds / 60) % 60)} min ${two(seconds % 60)} sec`;
}
