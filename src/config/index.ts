/** Configuration: flags and file in, one checked value out. */
export { flagTexts, flagValue, parseCommandLine, type ParsedFlags, printFlags } from './commandLine.ts';
export { consistencyWarnings, type Inconsistency, localhostRanges, type NodeFacts } from './consistency.ts';
export {
  type ConfigChange,
  type DetectLocalMode,
  diffConfig,
  type EffectiveConfig,
  toV1alpha1,
  type ValidConfig,
  writeConfig,
} from './effective.ts';
export { type GateName, gateStates, isGateEnabled } from './featureGates.ts';
export { parseDuration, printDuration } from './goFormats.ts';
export { FLAG_GROUPS, type FlagGroup, flagHelp, helpColumns, wrap } from './help.ts';
export { type Invocation, type LoadedConfig, loadConfig, nodeNameOf } from './load.ts';
export { BOOL, flushMilliseconds, INT, choiceOf, quantityValue, STRING, STRING_LIST } from './kinds.ts';
export { type Flag, flag, type Note, type Reload, type Result } from './setting.ts';
export { type Settings, toSettings } from './settings.ts';
export { FLAGS } from './table.ts';
export { isValid, validate } from './validate.ts';
