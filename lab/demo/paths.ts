/** Where things are, seen from dist/demo.js, which is how this runs. */
import { fileURLToPath } from 'node:url';

export const EXAMPLES = fileURLToPath(new URL('../examples', import.meta.url));
export const JUNCTION = fileURLToPath(new URL('../bin/junction', import.meta.url));
export const DEMO = fileURLToPath(new URL('./demo.js', import.meta.url));
export const MANIFESTS = fileURLToPath(new URL('../deploy/manifests', import.meta.url));
