/** What is in an unpacked image. */
import { readdirSync } from 'node:fs';

/** Every file and folder, sorted. */
export function pathsOf(rootfs: string): readonly string[] {
  return readdirSync(rootfs, { recursive: true, encoding: 'utf8' }).sort();
}
