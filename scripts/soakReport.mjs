/**
 * `node scripts/soakReport.mjs FILE`: puts the report that `npm run soak -- --report FILE` kept into docs/reliability.md, with
 * its command and the day.
 */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './support/paths.mjs';
import { endingPlainly, Failure } from './support/run.mjs';

const PAGE = join(ROOT, 'docs/reliability.md');
/** Output whose line above names a soak. */
const BLOCK = /<!-- measured: [^\n]*npm run soak[^\n]* -->\n```\n[\s\S]*?\n```\n/;

await endingPlainly(async () => {
  const [file] = process.argv.slice(2);
  if (file === undefined)
    throw new Failure('soakReport.mjs needs the file that npm run soak -- --report wrote.');
  const [command, ...lines] = readFileSync(file, 'utf8').trimEnd().split('\n');
  if (!command.startsWith('npm run soak') || lines.length === 0)
    throw new Failure(`${file} is no report of a soak: its first line is the command, and more follow.`);
  const page = readFileSync(PAGE, 'utf8');
  if (!BLOCK.test(page)) throw new Failure(`${PAGE} has no block of a soak.`);
  const day = statSync(file).mtime.toISOString().slice(0, 10);
  const block = `<!-- measured: ${day}, ${command} -->\n\`\`\`\n${lines.join('\n')}\n\`\`\`\n`;
  writeFileSync(
    PAGE,
    page.replace(BLOCK, () => block),
  );
});
