import type { EffectiveConfig } from './effective.ts';
import { isGateEnabled } from './featureGates.ts';
import { forbidden, invalid, required } from './fieldError.ts';
import { FLUSH_DURATION, flushMilliseconds, quantityValue } from './scalarKinds.ts';

/** What the logging library of Kubernetes can count to. */
const MOST_VERBOSE = 2 ** 31 - 1;

export function validateLogging({ logging, featureGates }: EffectiveConfig): readonly string[] {
  const hasAlpha = isGateEnabled(featureGates, 'LoggingAlphaOptions');
  return [
    ...flushFrequency(logging.flushFrequency),
    ...format(logging.format, isGateEnabled(featureGates, 'LoggingBetaOptions')),
    ...verbosity('verbosity', logging.verbosity),
    ...vmodule(logging),
    ...(['text', 'json'] as const).flatMap((name) =>
      hasAlpha ? [] : alphaOptions(name, logging.options[name]),
    ),
  ];
}

/** A bare number is nanoseconds, and shown as it was written. */
function flushFrequency(text: string): readonly string[] {
  if (flushMilliseconds(text) > 0) return [];
  const shown = FLUSH_DURATION.toJson(text);
  return [
    invalid('logging.flushFrequency', typeof shown === 'number' ? shown : text, 'Must be greater than zero'),
  ];
}

function format(name: string, hasBeta: boolean): readonly string[] {
  if (name === 'text') return [];
  if (name !== 'json') return [invalid('logging.format', name, 'Unsupported log format')];
  return hasBeta
    ? []
    : [forbidden('logging.format', 'Log format json is disabled, see LoggingBetaOptions feature')];
}

function verbosity(path: string, level: number): readonly string[] {
  return level <= MOST_VERBOSE ? [] : [invalid(`logging.${path}`, level, `Must be <= ${MOST_VERBOSE}`)];
}

function vmodule({ format, vmodule: rules }: EffectiveConfig['logging']): readonly string[] {
  const onlyText =
    rules.length > 0 && format !== 'text'
      ? [forbidden('logging.vmodule', 'Only supported for text log format')]
      : [];
  return [
    ...onlyText,
    ...rules.flatMap((rule, index) => [
      ...(rule.filePattern === ''
        ? [required(`logging.vmodule[${index}]`, 'File pattern must not be empty')]
        : []),
      ...(/[=,]/.test(rule.filePattern)
        ? [
            invalid(
              `logging.vmodule[${index}]`,
              rule.filePattern,
              'File pattern must not contain equal sign or comma',
            ),
          ]
        : []),
      ...verbosity(`vmodule[${index}]`, rule.verbosity),
    ]),
  ];
}

interface Options {
  readonly splitStream: boolean;
  readonly infoBufferSize: string;
}

function alphaOptions(name: string, { splitStream, infoBufferSize }: Options): readonly string[] {
  const disabled = (option: string): string =>
    forbidden(`logging.options.${name}.${option}`, 'Feature LoggingAlphaOptions is disabled');
  return [
    ...(splitStream ? [disabled('splitStream')] : []),
    ...(quantityValue(infoBufferSize) === 0 ? [] : [disabled('infoBufferSize')]),
  ];
}
