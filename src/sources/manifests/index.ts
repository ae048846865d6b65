export type { IgnoredObject } from './file-reading.ts';
export { ManifestSource, type ManifestSourceOptions } from './manifest-source.ts';
export { loadManifests, type Manifests, parseManifests } from './load.ts';
