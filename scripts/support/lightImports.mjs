/**
 * Two plugins for esbuild that make a bundle load sooner, with the same code in it. Measured on Node 24, where Node itself
 * starts in 26 ms (docs/decisions/0057-program-start.md).
 */
import { dirname } from 'node:path';

/**
 * `import` of a module of Node reads each of its exports once, `require` does not. Behind exports of node:http is Node's
 * copy of undici (25 ms), behind one of node:tls every root certificate (15 ms).
 */
export const NODE_MODULES_BY_NAME = {
  name: 'node-modules-by-name',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:(?:http|https|tls)$/ }, ({ path, kind }) =>
      kind === 'import-statement'
        ? { path, namespace: 'by-name', sideEffects: false }
        : { path, external: true },
    );
    onLoad({ filter: /.*/, namespace: 'by-name' }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule(${JSON.stringify(path)});`,
    }));
  },
};

/**
 * Of undici, the connections and requests: without its fetch, mocks, caches and WebSockets (30 ms). HTTP/2, which it speaks
 * only if asked to, is left out as on a Node without it (10 ms).
 */
export const UNDICI_CONNECTIONS = {
  name: 'undici-connections',
  setup({ onResolve, onLoad, resolve }) {
    onResolve({ filter: /^undici$/ }, async ({ resolveDir }) => {
      const { path, errors } = await resolve('undici/package.json', { resolveDir, kind: 'import-statement' });
      // The name of the output is made of this path too: it is the same wherever the packages are.
      return { path: 'undici', namespace: 'connections', pluginData: dirname(path), errors };
    });
    onLoad({ filter: /.*/, namespace: 'connections' }, ({ pluginData }) => ({
      contents: CONNECTIONS,
      resolveDir: pluginData,
    }));
    onResolve({ filter: /^node:http2$/ }, ({ path, importer }) =>
      importer.includes('/undici/lib/') ? { path, namespace: 'left-out' } : undefined,
    );
    onLoad({ filter: /.*/, namespace: 'left-out' }, ({ path }) => ({
      contents: `throw new Error(${JSON.stringify(`${path} is left out`)});`,
    }));
  },
};

/** What undici's index.js does, for these two. */
const CONNECTIONS = `
  import Dispatcher from './lib/dispatcher/dispatcher.js';
  import * as api from './lib/api/index.js';
  export { default as Agent } from './lib/dispatcher/agent.js';
  export { default as ProxyAgent } from './lib/dispatcher/proxy-agent.js';
  Object.assign(Dispatcher.prototype, api.default);
`;
