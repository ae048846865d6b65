/**
 * Flags and configuration-file fields that a version took away. Until the version ERROR_IN they are accepted and ignored, with
 * one warning each, so that an upgrade does not stop a proxy that an old file or command line starts.
 *
 * A value of the chart that goes keeps its place in `values.schema.json`, and `templates/NOTES.txt` warns of it; the chart's
 * `junction` section is the file's, and needs nothing.
 */
import type { Note } from './setting.ts';

export interface RemovedSetting {
  /** Without hyphens. */
  readonly flag?: string;
  /** A boolean flag takes a value only behind `=`; any other also as the next word. */
  readonly isBoolean?: true;
  /** Its path in the configuration file, such as `junction.proof`. */
  readonly field?: string;
  /** The version without it. */
  readonly since: string;
  /** Why it is gone or what to use instead, as half a sentence. */
  readonly reason: string;
}

const ERROR_IN = '0.4';

export const REMOVED_SETTINGS: readonly RemovedSetting[] = [
  {
    flag: 'proof',
    isBoolean: true,
    field: 'junction.proof',
    since: '0.3',
    reason: 'no packets are walked through the rules all day; junction doctor does that when it is asked',
  },
  {
    flag: 'strict',
    isBoolean: true,
    field: 'junction.strictManifests',
    since: '0.3',
    reason: 'kubectl apply --dry-run=server --validate=strict finds misspelt fields of manifests',
  },
  {
    flag: 'ui-bind-address',
    field: 'junction.uiBindAddress',
    since: '0.3',
    reason: 'the proxy serves no page any more; junction ui does',
  },
  {
    flag: 'ui-token-file',
    field: 'junction.uiTokenFile',
    since: '0.3',
    reason: 'the token is in the link that junction ui prints',
  },
  {
    flag: 'state-dir',
    field: 'junction.stateDir',
    since: '0.3',
    reason: 'a process leaves nothing for the next one any more',
  },
  {
    flag: 'nftables-backstop',
    isBoolean: true,
    field: 'junction.nftablesBackstop',
    since: '0.3',
    reason: '--nftables-protection says what protects the table: auto, backstop or none',
  },
  {
    flag: 'at',
    since: '0.3',
    reason: 'the proxy keeps only its last changes; the answer is for the present',
  },
  {
    flag: 'iptables-writer',
    field: 'junction.iptablesWriter',
    since: '0.3',
    reason: 'iptables-restore writes all rules',
  },
];

/** `name` as it was written: a flag with its hyphens, or the path of a field. */
export function removedNote(name: string, { reason }: RemovedSetting): Note {
  return {
    severity: 'warning',
    message: `${name} is ignored: ${reason}. It will be an error in ${ERROR_IN}.`,
  };
}
