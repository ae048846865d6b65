import { printSourceProblem, type SourceEvents } from '../../src/sources/source.ts';

export interface Recorder {
  readonly events: SourceEvents;
  /** What was told since the last call, as lines. */
  readonly told: () => readonly string[];
}

export function recorder(): Recorder {
  let lines: string[] = [];
  return {
    events: {
      service: (key, current) => lines.push(`${sign(current)} Service ${key}`),
      endpointSlice: (key, current) => lines.push(`${sign(current)} EndpointSlice ${key}`),
      node: (name, current) =>
        lines.push(`${sign(current)} Node ${name}${current?.zone ? ` in ${current.zone}` : ''}`),
      synced: () => lines.push('synced'),
      report: (problem) => lines.push(printSourceProblem(problem)),
    },
    told: () => {
      const all = lines;
      lines = [];
      return all;
    },
  };
}

function sign(current: unknown): string {
  return current === undefined ? '-' : '+';
}
