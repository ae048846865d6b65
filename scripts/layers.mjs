/** `node scripts/layers.mjs`: which folder may import which, and that pure folders ask nothing of the machine. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { ROOT } from './support/paths.mjs';

const INSIDE = ['model', 'plan', 'rules', 'report', 'time', 'explain'];
const TOOLS = ['errors.ts', 'faults.ts', 'version.ts', 'log', 'text'];
const EDGES = ['netlink', 'system', 'sources', 'config', 'telemetry', 'proxy', 'modes'];
/** A folder may import itself and these, all of which stand before it. */
const MAY_IMPORT = {
  'errors.ts': [],
  'version.ts': [],
  'faults.ts': [],
  text: [],
  log: ['text', 'faults.ts'],
  time: [],
  model: ['text'],
  plan: ['model'],
  report: ['model', 'plan'],
  rules: ['model', 'plan', 'time', 'report', 'errors.ts'],
  explain: ['model', 'plan', 'rules', 'time', 'text', 'errors.ts'],
  diff: ['model', 'plan', 'rules', 'explain', 'text'],
  system: ['model', 'plan', 'time', ...TOOLS],
  netlink: ['model', 'time', 'system', 'errors.ts', 'faults.ts'],
  sources: ['model', 'time', 'system', ...TOOLS],
  config: ['model', 'plan', 'rules', ...TOOLS],
  telemetry: ['model', 'plan', 'time', 'explain', ...TOOLS],
  proxy: [...INSIDE, 'sources', 'telemetry', 'netlink', ...TOOLS],
  modes: [...INSIDE, 'netlink', 'system', 'config', 'telemetry', 'proxy', ...TOOLS],
  bundle: [...INSIDE, ...EDGES, ...TOOLS],
  ui: ['model', 'time', 'config', 'telemetry', ...TOOLS],
  daemon: [...INSIDE, ...EDGES, ...TOOLS],
  doctor: [...INSIDE, ...EDGES, ...TOOLS, 'daemon'],
  cli: [...INSIDE, ...EDGES, ...TOOLS, 'ui', 'daemon', 'bundle', 'doctor', 'diff'],
  kubectl: [...INSIDE, ...EDGES, ...TOOLS, 'bundle', 'cli'],
  lab: [...INSIDE, ...EDGES, ...TOOLS, 'cli', 'ui'],
  // What a browser can run.
  page: ['model', 'plan', 'explain', 'text'],
};

const PURE = new Set(['text', 'model', 'plan', 'rules', 'report', 'time', 'explain', 'diff']);
/** The one file beside pure ones that is there to be impure. */
const EDGE = 'src/time/systemClock.ts';
/** Names of chains are hashes, and a hash is pure. */
const HASHES = 'src/modes/iptables/rules/names.ts';
/** Date.parse and a Date of a given time ask nothing of the machine. */
const IMPURE =
  /\bDate\b(?!\.parse\b|\([^)])|\bMath\.random\b|\bprocess\b|\bset(?:Timeout|Interval|Immediate)\b|\bperformance\b|\bcrypto\b|\bfetch\(|\bconsole\b|\bglobalThis\b|\bimport\.meta\b/;
/** What is pure of a mode, and what of the proxy is pure and used by all modes. */
const RULES = /^src\/modes\/(?:\w+\/rules\/|iptables\/sync\.ts|(?:walk|kernelRules|matches|deviations)\.ts)/;
const REPORT = /^src\/proxy\/report\.ts/;
const IMPORT = /(?:\bfrom\s+|\bimport\s+|\bimport\(\s*|\brequire\(\s*)(['"])([^'"\n]+)\1/g;
const COMMENT_OR_STRING = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/gm;

/** `model` for `src/model/ip.ts`, `lab` and `page` for all of them, `errors.ts` for `src/errors.ts`. */
function roomOf(path) {
  if (/^(?:lab|page)\//.test(path)) return path.split('/')[0];
  if (RULES.test(path)) return 'rules';
  if (REPORT.test(path)) return 'report';
  return path.split('/')[1] ?? path;
}

function isPure(path) {
  if (path === 'src/errors.ts' || path === 'yaml') return true;
  return path.startsWith('src/') && PURE.has(roomOf(path)) && path !== EDGE;
}

function* problemsOf(path) {
  const text = readFileSync(join(ROOT, path), 'utf8');
  const room = roomOf(path);
  const allowed = MAY_IMPORT[room];
  if (allowed === undefined) {
    yield 'is in a folder that scripts/layers.mjs does not know';
    return;
  }
  const imports = [...text.matchAll(IMPORT)].map(([, , name]) =>
    name.startsWith('.') ? normalize(join(dirname(path), name)) : name,
  );
  for (const name of imports) {
    if (/^(?:test|bench|scripts)\//.test(name)) yield `imports ${name}, which does not ship`;
    const isOurs = /^(?:src|lab|page)\//.test(name);
    if (isOurs && ![room, ...allowed].includes(roomOf(name)))
      yield `imports ${name}: ${room} may import ${allowed.join(', ') || 'nothing else'}`;
    if (isPure(path) && !isPure(name) && !(path === HASHES && name === 'node:crypto'))
      yield `is pure, and imports ${name}`;
    if (room === 'netlink' && name.startsWith('src/model/') && name !== 'src/model/ip.ts')
      yield `imports ${name}: netlink knows addresses, and nothing of services`;
  }
  const impure =
    isPure(path) && path !== 'src/errors.ts' && IMPURE.exec(text.replaceAll(COMMENT_OR_STRING, ' '));
  if (impure) yield `is pure, and uses ${impure[0]}`;
}

const files = ['src', 'lab', 'page']
  .flatMap((folder) => readdirSync(join(ROOT, folder), { recursive: true }).map((name) => join(folder, name)))
  .filter((path) => /\.tsx?$/.test(path));
const problems = files.flatMap((path) => [...problemsOf(path)].map((problem) => `${path} ${problem}`));
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
