import { field } from '../entry.ts';
import { VERBOSITY_RULES } from '../listKinds.ts';
import { BOOL, FLUSH_DURATION, QUANTITY, STRING, UNSIGNED } from '../scalarKinds.ts';

const ALPHA = 'needs the feature gate LoggingAlphaOptions';

export const LOGGING = {
  title: 'Logging',
  intro: 'Of these, flags that are given win over the file.',
  fields: [
    field('logging.format', STRING, {
      default: 'text',
      flag: { name: 'logging-format' },
      choices: ['text', 'json'],
      flagWins: true,
      help: 'how log lines look',
    }),
    field('logging.flushFrequency', FLUSH_DURATION, {
      default: '5s',
      flag: { name: 'log-flush-frequency' },
      flagWins: true,
      help: 'longest time that a line waits in a buffer of split streams; without a buffer every line is written at once',
    }),
    field('logging.verbosity', UNSIGNED, {
      default: 0,
      flag: { name: 'v', short: 'v', placeholder: 'LEVEL' },
      flagWins: true,
      reload: 'live',
      help: 'how much to log: 1 for every sync, 2 and up for debugging',
    }),
    field('logging.vmodule', VERBOSITY_RULES, {
      default: [],
      flag: { name: 'vmodule' },
      omit: 'zero',
      flagWins: true,
      reload: 'live',
      help: 'verbosity of single source files, for the text format: patterns of file names without their ending, such as familyLoop=2 or nft*=3; those of flag and file are joined, the flag first, and the first that matches counts',
    }),
    field('logging.options.text.splitStream', BOOL, {
      default: false,
      flag: { name: 'log-text-split-stream' },
      omit: 'zero',
      flagWins: true,
      help: `text format: errors and warnings to stderr, the rest to stdout; ${ALPHA}`,
    }),
    field('logging.options.text.infoBufferSize', QUANTITY, {
      default: '0',
      flag: { name: 'log-text-info-buffer-size' },
      flagWins: true,
      help: `text format with split streams: bytes of the rest that may wait in a buffer, such as 512 or 64Ki; ${ALPHA}`,
    }),
    field('logging.options.json.splitStream', BOOL, {
      default: false,
      flag: { name: 'log-json-split-stream' },
      omit: 'zero',
      flagWins: true,
      help: `JSON format: errors to stderr, the rest to stdout; ${ALPHA}`,
    }),
    field('logging.options.json.infoBufferSize', QUANTITY, {
      default: '0',
      flag: { name: 'log-json-info-buffer-size' },
      flagWins: true,
      help: `JSON format with split streams: bytes of the rest that may wait in a buffer; ${ALPHA}`,
    }),
  ],
  flags: [],
} as const;
