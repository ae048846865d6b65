// Lists the source files and functions that run while one EndpointSlice event passes, from the API server's watch to the kernel,
// in any thread. Needs root and a built dist/. iptables and nftables run in a network namespace of this machine,
// ipvs in User-mode Linux.
//   node scripts/eventPath.mjs iptables nftables ipvs
import { spawnSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { ROOT } from './support/paths.mjs';

const MEASURE = join(ROOT, 'scripts/eventPath/measure.mjs');
const work = join(ROOT, 'node_modules/.cache', `junction-event-path-${process.pid}`);
const apiServer = join(work, 'apiServer.mjs');

try {
  await build({
    absWorkingDir: ROOT,
    entryPoints: { apiServer: 'scripts/eventPath/apiServer.ts', guest: 'lab/guest/machine.ts' },
    outdir: work,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    packages: 'external',
    logLevel: 'warning',
  });
  for (const mode of process.argv.slice(2)) await (mode === 'ipvs' ? inGuest(mode) : inNamespace(mode));
} finally {
  await rm(work, { recursive: true, force: true });
}

function inNamespace(mode) {
  const command = ['--net', process.execPath, MEASURE, mode, apiServer];
  const { status } = spawnSync('unshare', command, { stdio: 'inherit' });
  if (status !== 0) process.exitCode = 1;
}

async function inGuest(mode) {
  const { runInGuest } = await import(pathToFileURL(join(work, 'guest.mjs')).href);
  const { code, stdout, stderr } = await runInGuest(MEASURE, { arguments: [mode, apiServer] });
  process.stdout.write(stdout);
  process.stderr.write(stderr);
  if (code !== 0) process.exitCode = 1;
}
