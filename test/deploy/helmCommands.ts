/** Commands of Helm on a page, and the values that they set. */
import { type Data, isData, merge } from './chart.ts';

export interface HelmCommand {
  readonly command: string;
  readonly verb: 'install' | 'upgrade';
  readonly chart: string;
  readonly keepsValues: boolean;
  readonly values: Data;
  /** As they are written: `image.repository`. */
  readonly paths: readonly string[];
}

/** What a reader's shell puts in. */
const VARIABLES: Readonly<Record<string, string>> = {
  $API: 'api-server.example',
  $PODS: '10.244.0.0/16',
};

const WORD = /'[^']*'|"[^"]*"|[^\s'"]+/g;

export function helmCommands(text: string): readonly HelmCommand[] {
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block);
  const lines = blocks.flatMap((block) => block.replaceAll(/\\\n\s*/g, '').split('\n'));
  return lines.filter((line) => /^helm (?:install|upgrade) /.test(line)).map(parse);
}

function parse(command: string): HelmCommand {
  const words = [...command.matchAll(WORD)].map(([word]) => word.replaceAll(/^['"]|['"]$/g, ''));
  const [, verb, , chart = ''] = words;
  if (verb !== 'install' && verb !== 'upgrade')
    throw new Error(`not a command that is known here: ${command}`);
  const settings = words.flatMap((word, index) => (words[index - 1] === '--set' ? [word] : []));
  return {
    command,
    verb,
    chart,
    keepsValues: words.includes('--reuse-values'),
    values: settings.map(valuesOf).reduce((sum, each) => merge(sum, each), {}),
    paths: settings.map((setting) => setting.slice(0, setting.indexOf('='))),
  };
}

/** As Helm's parser of `--set`, as far as pages use it. */
function valuesOf(setting: string): Data {
  const at = setting.indexOf('=');
  if (at < 1) throw new Error(`--set ${setting}: no value`);
  const keys = setting.slice(0, at).split('.');
  const value = scalarOrList(setting.slice(at + 1));
  const made = keys.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value);
  if (!isData(made)) throw new Error(`--set ${setting}: no name`);
  return made;
}

function scalarOrList(text: string): unknown {
  const [, list] = /^\{(.*)\}$/.exec(text) ?? [];
  return list === undefined ? scalar(text) : list.split(',').map(scalar);
}

function scalar(text: string): unknown {
  const filled = VARIABLES[text] ?? text;
  if (filled.includes('$')) throw new Error(`nobody knows ${filled} here`);
  if (filled === 'true' || filled === 'false') return filled === 'true';
  return /^(?:0|-?[1-9]\d*)$/.test(filled) ? Number(filled) : filled;
}
