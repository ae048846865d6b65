// Checks nothing, bundles everything: dist/junction.js (the command line; what only some commands need is in dist/junction/,
// and loaded when it is needed), dist/demo.js and dist/demo-options.js (npm start),
// dist/lab-agent.js (the program inside each host of the lab),
// dist/bench.js, dist/privileges.js (for the scripts), and dist/page/ (what the browser loads).
import { existsSync } from 'node:fs';
import { readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';
import { commitOf } from './ship/source.mjs';
import { buildPage } from './support/buildPage.mjs';
import { sourceHash } from './support/hashes.mjs';
import { NODE_MODULES_BY_NAME, UNDICI_CONNECTIONS } from './support/lightImports.mjs';
import { escapeWideLetters } from './support/oneByte.mjs';
import { ROOT } from './support/paths.mjs';
import { writeSourceLines } from './support/sourceLines.mjs';

const work = join(ROOT, 'node_modules/.cache', `junction-build-${process.pid}`);
const fresh = join(work, 'new');
const dist = join(ROOT, 'dist');
const hash = sourceHash();

/** https://reproducible-builds.org/specs/source-date-epoch/ */
function dateOf() {
  const epoch = process.env.SOURCE_DATE_EPOCH;
  return new Date(epoch ? Number(epoch) * 1000 : Date.now()).toISOString();
}

const common = {
  absWorkingDir: ROOT,
  outdir: fresh,
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  packages: 'external',
  sourcemap: true,
  logLevel: 'warning',
  define: { JUNCTION_BUILD: JSON.stringify({ commit: commitOf(['src', 'lab', 'page']), date: dateOf() }) },
};

/** CommonJS packages ask for Node's modules by it. */
const REQUIRE = `import { createRequire as junctionRequire } from 'node:module'; const require = junctionRequire(import.meta.url);`;

try {
  await build({
    ...common,
    // Alone: every further entry would cut what is shared into more files.
    entryPoints: { junction: 'src/cli/bin.ts' },
    splitting: true,
    chunkNames: 'junction/[name]-[hash]',
    // yaml and undici are 200 files, which takes longer to find and read than to run.
    packages: 'bundle',
    external: ['koffi'],
    banner: { js: REQUIRE },
    plugins: [NODE_MODULES_BY_NAME, UNDICI_CONNECTIONS],
  });
  await build({
    ...common,
    entryPoints: {
      'kubectl-junction': 'src/kubectl/bin.ts',
      demo: 'lab/demo/main.ts',
      'demo-options': 'lab/demo/options.ts',
      'lab-agent': 'lab/agent/main.ts',
      privileges: 'lab/privileges.ts',
      bench: 'bench/main.ts',
      'bench-iptables-node': 'bench/iptablesNode.ts',
      'bench-ipvs-guest': 'bench/ipvs/guest.ts',
      'bench-budgets-run': 'bench/budgets/run.ts',
      'bench-budgets-start': 'bench/budgets/start.ts',
      'bench-budgets-generations': 'bench/budgets/generations.ts',
      'bench-nftables-node': 'bench/nftables/node.ts',
      'bench-nftables-proxy': 'bench/nftables/proxyRun.ts',
      'bench-nftables-watcher': 'bench/nftables/watcher.ts',
      'bench-sizing-run': 'bench/sizing/run.ts',
      'bench-hostile-run': 'bench/hostile/run.ts',
      'bench-hostile-livez': 'bench/hostile/livez.ts',
      // An image is built without the tests.
      ...(existsSync(join(ROOT, 'test/support')) && {
        'bench-sizing-server': 'bench/sizing/server.ts',
        'bench-loss': 'bench/loss/command.ts',
        'bench-loss-api': 'bench/loss/apiServer.ts',
        'bench-loss-guest': 'bench/loss/guest.ts',
        'bench-nftables-api': 'bench/nftables/apiServer.ts',
        'bench-hostile-api': 'bench/hostile/api.ts',
        'bench-hostile-objects': 'bench/hostile/objects.ts',
        soak: 'bench/soak/main.ts',
        'soak-daemon': 'bench/soak/faultyDaemon.ts',
      }),
    },
  });
  await buildPage(join(fresh, 'page'));
  for (const name of await readdir(fresh, { recursive: true }))
    if (name.endsWith('.js') && !name.startsWith('page/')) {
      await escapeWideLetters(join(fresh, name));
      await writeSourceLines(join(fresh, name));
    }
  await writeFile(join(fresh, '.stamp'), `${hash}\n`);
  // Whoever starts a program during a build finds the old one or the new one, for all but a moment.
  if (existsSync(dist)) await rename(dist, join(work, 'old'));
  await rename(fresh, dist);
} catch (error) {
  if (!('errors' in error)) throw error;
  process.exitCode = 1; // esbuild has said what is wrong
} finally {
  await rm(work, { recursive: true, force: true });
}
