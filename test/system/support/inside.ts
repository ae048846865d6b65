/** Netlink sockets belong to their thread's network namespace, so what a test asks of them runs in a process inside. */
import { rm } from 'node:fs/promises';
import { expect } from 'vitest';
import { bundle } from './bundle.ts';
import type { Namespace } from './namespace.ts';

/** Runs the source, whose imports start at the project, and answers what it printed as JSON. */
export async function inside(namespace: Namespace, name: string, source: string): Promise<unknown> {
  const script = await bundle(name, source);
  const { code, stdout, stderr } = await namespace.runner([process.execPath, script]);
  await rm(script);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
}

/** What a program prints inside. */
export async function output(namespace: Namespace, ...argv: [string, ...string[]]): Promise<string> {
  const { code, stdout, stderr } = await namespace.runner(argv);
  expect({ argv, code, stderr }).toEqual({ argv, code: 0, stderr: '' });
  return stdout;
}
