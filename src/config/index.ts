/** Configuration: flags and file in, one checked value out. */
export { flagValue, parseCommandLine, type ParsedFlags, printFlags } from './commandLine.ts';
export { consistencyWarnings, type Inconsistency, localhostRanges, type NodeFacts } from './consistency.ts';
export { type ConfigChange, diffConfig } from './diff.ts';
export { parseDuration, printDuration } from './duration.ts';
export type { DetectLocalMode, EffectiveConfig, ProxyMode, ValidConfig } from './effective.ts';
export { type Flag, flag, type Reload } from './entry.ts';
export { type GateName, gateStates, isGateEnabled } from './featureGates.ts';
export { FLAG_GROUPS, type FlagGroup, flagHelp, helpColumns, wrap } from './help.ts';
export { STRING_LIST } from './listKinds.ts';
export { type Invocation, type LoadedConfig, loadConfig, nodeNameOf } from './load.ts';
export type { Note, Result } from './note.ts';
export { BOOL, flushMilliseconds, INT, oneOf, quantityValue, STRING } from './scalarKinds.ts';
export { FLAGS } from './table.ts';
export { configz, toV1alpha1, writeConfig } from './v1alpha1.ts';
export { isValid, validate } from './validate.ts';
export { toViewSettings } from './viewSettings.ts';
export { didYouMean } from '../text/suggest.ts';
export { type Settings, toSettings } from './settings.ts';
