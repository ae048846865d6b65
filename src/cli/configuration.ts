/** The configuration that a command line names: from its flags and file, checked. */
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { ParsedFlags } from '../config/commandLine.ts';
import type { ValidConfig } from '../config/effective.ts';
import { type LoadedConfig, loadConfig, nodeNameOf } from '../config/load.ts';
import { type Settings, toSettings } from '../config/settings.ts';
import { isValid, validate } from '../config/validate.ts';
import { UsageError } from './commands.ts';

export function loadValid(parsed: ParsedFlags): LoadedConfig & { readonly config: ValidConfig } {
  const loaded = loadConfig(parsed, (path) => readFileSync(path, 'utf8'));
  if (!loaded.ok) throw new UsageError(loaded.problems);
  const { config } = loaded.value;
  if (!isValid(config)) throw new UsageError(validate(config));
  return { ...loaded.value, config };
}

export function nodeName(config: ValidConfig): string {
  const name = nodeNameOf(config, hostname());
  if (name === undefined) throw new UsageError(['--hostname-override must not be empty']);
  return name;
}

export function nodeSettings(config: ValidConfig): Settings {
  return toSettings(config, nodeName(config));
}
