/**
 * koffi calls libc. It is loaded on first use, from node_modules; in what ships, scripts/ship/program.mjs bundles it in
 * this module's place, and its native part lies beside the program.
 */
import { createRequire } from 'node:module';

export function loadKoffi(): typeof import('koffi') {
  return createRequire(import.meta.url)('koffi') as typeof import('koffi');
}
