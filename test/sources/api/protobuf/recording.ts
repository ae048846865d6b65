import { readFileSync } from 'node:fs';

/** The body of an answer of kube-apiserver 1.36.4, byte for byte. */
export function recording(name: string): Buffer {
  return readFileSync(new URL(`recordings/${name}`, import.meta.url));
}
