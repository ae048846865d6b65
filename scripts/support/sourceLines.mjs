// For each bundle that logs: where its lines come from, small enough to be held in memory by a running proxy.
import { readFile, writeFile } from 'node:fs/promises';
import { SourceMap } from 'node:module';

/** A line may hold several calls; that of the logger is the one that is asked about. */
const LOG_CALL = /\.(?:info|warn|error|verbose)\(/;

/** Reads `bundle` and `bundle.map`, writes `bundle.lines.json`, which src/log/caller.ts reads. */
export async function writeSourceLines(bundle) {
  const text = await readFile(bundle, 'utf8');
  if (!/\blog\.(?:info|warn|error|verbose)\(/.test(text)) return;
  const map = new SourceMap(JSON.parse(await readFile(`${bundle}.map`, 'utf8')));
  const sources = new Map();
  const lines = text.split('\n').map((line, index) => {
    const column = LOG_CALL.exec(line)?.index ?? line.search(/\S/);
    const { originalSource, originalLine } = map.findEntry(index, Math.max(column, 0));
    if (originalSource === undefined || originalLine >= 0xffff) return 0;
    const source = originalSource.replace(/^(?:.*\/)?(?=(?:src|bench|test)\/)/, '');
    if (!sources.has(source)) sources.set(source, sources.size);
    return ((sources.get(source) << 16) | (originalLine + 1)) >>> 0;
  });
  const table = {
    sources: [...sources.keys()],
    lines: Buffer.from(Uint32Array.from(lines).buffer).toString('base64'),
  };
  await writeFile(`${bundle}.lines.json`, JSON.stringify(table));
}
