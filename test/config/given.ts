/** Configurations from a command line and, perhaps, a file. */
import { stringify } from 'yaml';
import { type ParsedFlags, parseCommandLine } from '../../src/config/commandLine.ts';
import type { EffectiveConfig, ValidConfig } from '../../src/config/effective.ts';
import { type LoadedConfig, loadConfig } from '../../src/config/load.ts';
import { isValid, validate } from '../../src/config/validate.ts';

export const HEADER = { apiVersion: 'kubeproxy.config.k8s.io/v1alpha1', kind: 'KubeProxyConfiguration' };
export const FILE = '/etc/junction/config.yaml';

export function parse(...argv: readonly string[]): ParsedFlags {
  const parsed = parseCommandLine(argv);
  if (!parsed.ok) throw new Error(parsed.problems.join('\n'));
  return parsed.value;
}

export function problemsOf(...argv: readonly string[]): readonly string[] {
  const parsed = parseCommandLine(argv);
  return parsed.ok ? [] : parsed.problems;
}

export function load(argv: readonly string[] = [], text?: string): LoadedConfig {
  const loaded = tryLoad(argv, text);
  if (!loaded.ok) throw new Error(loaded.problems.join('\n'));
  return loaded.value;
}

export function tryLoad(argv: readonly string[], text?: string): ReturnType<typeof loadConfig> {
  const flags = text === undefined ? argv : [`--config=${FILE}`, ...argv];
  return loadConfig(parse(...flags), () => text ?? '');
}

export function fromFlags(...argv: readonly string[]): EffectiveConfig {
  return load(argv).config;
}

/** `fields` are those of the file; flags may come on top. */
export function fromFile(fields: object, ...argv: readonly string[]): EffectiveConfig {
  return load(argv, stringify({ ...HEADER, ...fields })).config;
}

export function valid(config: EffectiveConfig): ValidConfig {
  if (!isValid(config)) throw new Error(validate(config).join('\n'));
  return config;
}
