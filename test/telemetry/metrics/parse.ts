/** Reads the text that Prometheus reads, and is strict about every line of it. */

export interface ParsedSample {
  readonly name: string;
  readonly labels: readonly (readonly [string, string])[];
  readonly value: number;
}

export interface ParsedFamily {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly samples: readonly ParsedSample[];
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const HEAD = new RegExp(`^# (HELP|TYPE) (${NAME}) (.+)$`);
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(.*)\\})? (\\S+)$`);
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/y;
const NUMBER = /^(?:NaN|[+-]Inf|-?\d+(?:\.\d+)?(?:e[+-]\d{2,3})?)$/;
const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  counter: [''],
  gauge: [''],
  histogram: ['_bucket', '_sum', '_count'],
};

export function parseExposition(text: string): readonly ParsedFamily[] {
  if (text === '') return [];
  if (!text.endsWith('\n')) throw new Error('the last line has no end');
  const families: (ParsedFamily & { readonly samples: ParsedSample[] })[] = [];
  let help: readonly [string, string] | undefined;
  for (const line of text.slice(0, -1).split('\n')) {
    const head = HEAD.exec(line);
    const family = families.at(-1);
    if (head?.[1] === 'HELP') {
      if (families.some(({ name }) => name === head[2])) throw new Error(`twice: ${line}`);
      if (family?.samples.length === 0) throw new Error(`no samples before: ${line}`);
      help = [head[2] ?? '', head[3] ?? ''];
    } else if (head?.[1] === 'TYPE') {
      if (help?.[0] !== head[2]) throw new Error(`no HELP before: ${line}`);
      if (!Object.hasOwn(SUFFIXES, head[3] ?? '')) throw new Error(`unknown type: ${line}`);
      families.push({ name: head[2] ?? '', help: help?.[1] ?? '', type: head[3] ?? '', samples: [] });
    } else {
      if (!family) throw new Error(`a sample of nothing: ${line}`);
      family.samples.push(parseSample(line, family));
    }
  }
  for (const family of families) checkFamily(family);
  const names = families.map(({ name }) => name);
  if (names.join() !== [...names].sort().join()) throw new Error('families are not sorted');
  return families;
}

function parseSample(line: string, { name, type }: ParsedFamily): ParsedSample {
  const match = SAMPLE.exec(line);
  const sampleName = match?.[1] ?? '';
  if (!match || !NUMBER.test(match[3] ?? '')) throw new Error(`not a sample: ${line}`);
  if (!(SUFFIXES[type] ?? []).some((suffix) => sampleName === name + suffix)) {
    throw new Error(`a sample of another family than ${name}: ${line}`);
  }
  const value = Number((match[3] ?? '').replace('Inf', 'Infinity'));
  return { name: sampleName, labels: parseLabels(match[2] ?? '', line), value };
}

function parseLabels(text: string, line: string): readonly (readonly [string, string])[] {
  const labels: (readonly [string, string])[] = [];
  for (let at = 0; at < text.length; at = LABEL.lastIndex) {
    LABEL.lastIndex = at;
    const match = LABEL.exec(text);
    if (!match) throw new Error(`bad labels: ${line}`);
    labels.push([
      match[1] ?? '',
      (match[2] ?? '').replaceAll(/\\(.)/g, (_, c: string) => (c === 'n' ? '\n' : c)),
    ]);
  }
  const names = labels.map(([label]) => label).filter((label) => label !== 'le');
  if (names.join() !== [...names].sort().join()) throw new Error(`labels are not sorted: ${line}`);
  return labels;
}

function checkFamily({ name, type, samples }: ParsedFamily): void {
  if (samples.length === 0) throw new Error(`${name} has no samples`);
  const keys = samples.map((sample) => `${sample.name}${JSON.stringify(sample.labels)}`);
  if (new Set(keys).size !== keys.length) throw new Error(`${name} has a sample twice`);
  if (type !== 'histogram') return;
  let last = 0;
  for (const sample of samples) {
    if (sample.name.endsWith('_bucket')) {
      if (sample.labels.at(-1)?.[0] !== 'le') throw new Error(`${name}: le is not last`);
      if (sample.value < last) throw new Error(`${name}: a bucket holds less than the one before`);
      last = sample.value;
    } else if (sample.name.endsWith('_count')) {
      if (sample.value !== last) throw new Error(`${name}: the count is not that of the last bucket`);
      last = 0;
    }
  }
}
