export type { IgnoredObject } from './fileReading.ts';
export { ManifestSource, type ManifestSourceOptions } from './manifestSource.ts';
export { checkRoots } from './roots.ts';
export { loadManifests, type Manifests, parseManifests } from './load.ts';
