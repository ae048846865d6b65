// Checks nothing, bundles everything: dist/junction.js (the command line), dist/demo.js (npm start),
// dist/lab-agent.js (the program inside each host of the lab), dist/bench.js.
import { rm } from 'node:fs/promises';
import { build } from 'esbuild';

await rm('dist', { recursive: true, force: true });
await build({
  entryPoints: {
    junction: 'src/cli/bin.ts',
    demo: 'src/demo/main.ts',
    'lab-agent': 'src/lab/agent/main.ts',
    bench: 'bench/main.ts',
  },
  outdir: 'dist',
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  packages: 'external',
  sourcemap: true,
  logLevel: 'warning',
});
