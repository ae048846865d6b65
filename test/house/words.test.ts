/** The field's words: a netfilter or Kubernetes engineer must recognise every name, comment and message without a glossary. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { filesUnder, ROOT } from './sources.ts';

type Scope = 'code' | 'docs';

interface Word {
  readonly word: RegExp;
  readonly instead: string;
  readonly reason: string;
  /** Where it is refused: `code` is src and lab with their file names, `docs` is README and the pages. Unset: both. */
  readonly scope?: Scope;
  /** Honest uses, cut out before the word is looked for. */
  readonly except?: RegExp;
}

const WORDS: readonly Word[] = [
  {
    word: /doors?\b|Door|door[A-Z]/,
    instead: 'client: IptablesClient, NftClient, IpvsClient',
    reason: 'client is what everybody calls it',
  },
  {
    word: /backend/i,
    instead: 'mode, proxier',
    reason: 'a backend is an endpoint to everybody else',
    except:
      /(?:nf_tables|nftables|nft|iptables|legacy|xtables|the other|both|each|this|a) backends?\b|iptables['’]s? backends?|backends? of iptables|balancer[^.]*backend|backend of several|whose backend/gi,
  },
  {
    word: /\b(?:FamilyProxy|FamilyLoop|FamilyService|Guard)\b|class Proxy\b/,
    instead: 'DualStackProxier, Proxier, SyncRunner, FamilyRuntime, Monitor',
    reason: "kube-proxy's words",
  },
  {
    word: /\bbreath(?:s|e|ing)?\b|Breath|unhurried|calmly|\batOnce\b/,
    instead: 'time slice, runSliced, forEachSliced, runToEnd',
    reason: 'what a scheduler calls it',
  },
  {
    word: /\b[Aa]dopt|[a-z]Adopt/,
    instead: 'reconcile, resync; shared (foreign-owned) chain',
    reason: 'what a controller calls it',
  },
  {
    word: /(?<![a-z])[Mm]end(?:s|ed|ing)?(?![a-z])/,
    instead: 'repair, repaired',
    reason: 'the usual word',
  },
  {
    word: /\bnews\b|[a-z]News\b/,
    instead: 'notification, event',
    reason: 'what netlink and Kubernetes call it',
  },
  {
    word: /\b(?:is|are|was|were|be|been|being) told\b(?! (?:apart|from))|\bTold\b|\b[Tt](?:old|ells?|elling) of\b|\b(?:[Hh]eard|[Hh]ears) of\b|#(?:tell|told|heard)\b|\btell\(|\bconst (?:told|heard)\b|\b(?:tell|told|heard)[A-Z]\w*|[a-z](?:Told|Heard|Tell)\b|'heard'/,
    instead: 'notified, subscribe, emit, report, log, return',
    reason: 'says who does what with which call',
    scope: 'code',
  },
  {
    word: /\bfollow(?:ed|er|ers|ing)?[A-Z(]|[.#]follow\b|Follower|\bfollows[A-Z]/,
    instead: 'subscribe',
    reason: 'what it is called where notifications are',
    scope: 'code',
  },
  {
    word: /somebody else|\bstrangers?\b|[a-z]Stranger|culprit/i,
    instead: 'another program, unknown element, changedBy',
    reason: 'names what is meant',
  },
  {
    word: /ledger|\btally|[a-z]Tally|\btallies\b/i,
    instead: 'desired state, reference counts, changeset',
    reason: 'the usual words',
  },
  {
    word: /\bremember|[a-z]Remember|\blosers?\b|[a-z]Loser/i,
    except: /NFT_CHAINS\.remember(?:ed)?\b|\bremember(?:ed)?: 'remember(?:ed)?'|\bremembering\b/g,
    instead: 'keep, cache, record; affinity entry, learn, lookup, evict',
    reason: 'a set has entries, not a memory',
    scope: 'code',
  },
  {
    word: /\bforget[A-Z(]|[.#]forget\b/,
    instead: 'evict, drop, delete',
    reason: 'a set has entries, not a memory',
    scope: 'code',
  },
  {
    word: /lingering|onThisNode|keepsClientAddress/i,
    instead: 'draining, local endpoints, preservesClientIP',
    reason: "the API's words",
  },
  {
    word: /PodDetector|who is no pod|are no pods?\b|is no pod\b/,
    instead: 'LocalTrafficDetector; sources outside the pod network',
    reason: "kube-proxy's words",
  },
  {
    word: /\banew\b|for as long as it is so|\bcomes? and goe?s?\b/,
    instead: 'again; until resolved; added and deleted',
    reason: 'plain words can be searched for',
  },
  {
    word: /(?:^|\/\*\*|\/\/|[.;:])\s*(?:\* )?(?:Answers\b|answers (?:the|a|an|how|whether|what|`))/m,
    instead: 'Returns',
    reason: 'functions return',
    scope: 'code',
  },
  {
    word: /left-?overs?\b|Leftover/i,
    instead: 'stale objects',
    reason: 'what is searched for',
  },
  {
    word: /\bremains\b|Remains/,
    instead: 'stale objects',
    reason: 'what is searched for',
    scope: 'code',
  },
  { word: /fingerprint/i, instead: 'generation', reason: 'what nf_tables and Kubernetes call it' },
  { word: /\bentrances?\b|Entrance/, instead: 'base-chain jumps', reason: 'what netfilter calls it' },
  {
    word: /\b[Ww]orlds?\b|World|\b[Pp]ictures?\b|[a-z]Picture/,
    instead: 'snapshot, store',
    reason: 'what client-go calls it',
    scope: 'code',
  },
  {
    word: /\bmirror|[a-z]Mirror|Mirror/,
    instead: 'store, copy of the kernel state',
    except: /skip-mirror|SKIP_MIRROR|control plane mirrors/g,
    reason: 'what client-go calls it',
    scope: 'code',
  },
  { word: /surroundings/i, instead: 'environment', reason: 'the usual word' },
  {
    word: /\bMoments?\b|[a-z]Moments?\b|Moment[A-Z]|\bmoment[A-Z]/,
    instead: 'timestamp',
    reason: 'the usual word',
  },
  { word: /[.#]sign\(/, instead: 'touch()', reason: 'nothing is signed', scope: 'code' },
  { word: /keepGarbageYoung/, instead: 'disablePretenuring', reason: "V8's word" },
];

/** Words that are bound by something else than our taste. */
const ALLOWED: readonly { readonly path: string; readonly text: RegExp; readonly reason: string }[] = [
  {
    path: 'src/cli/cleanupCommand.ts',
    text: /\bremains\b/g,
    reason: 'a key of `junction cleanup --output json`, which scripts read',
  },
];

interface Page {
  readonly path: string;
  readonly text: string;
  readonly scope: Scope;
}

const CODE: readonly Page[] = ['src', 'page', 'lab']
  .flatMap(filesUnder)
  .map(({ path, text }) => ({ path, text, scope: 'code' }));

/** Records of decisions say what was so when they were made; their titles are read today. */
const DOCS: readonly Page[] = [
  ...['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md'].map((path) => page(path)),
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => page(`docs/${name}`)),
];

function page(path: string): Page {
  const whole = readFileSync(join(ROOT, path), 'utf8');
  const text = path.startsWith('docs/decisions/') ? (whole.split('\n')[0] ?? '') : whole;
  return { path, text: text.replaceAll(/[\w./]+\.test\.ts/g, ''), scope: 'docs' };
}

function findings({ path, text, scope }: Page): readonly string[] {
  const ours = ALLOWED.filter((each) => each.path === path).reduce(
    (left, each) => left.replaceAll(each.text, ''),
    `${scope === 'code' ? `${path}\n` : ''}${text}`,
  );
  return WORDS.filter((each) => each.scope === undefined || each.scope === scope).flatMap(
    ({ word, instead, except }) => {
      const searched = except ? ours.replaceAll(except, '') : ours;
      const all = new RegExp(word.source, `${word.flags}g`);
      return [...searched.matchAll(all)].map(({ index, 0: found }) => {
        const line = searched.slice(0, index).split('\n').length - (scope === 'code' ? 1 : 0);
        return `${path}:${line} ${JSON.stringify(found.trim())}: use ${instead}`;
      });
    },
  );
}

describe('words', () => {
  test.each(WORDS)('$word has a reason and something to use instead', ({ instead, reason }) => {
    expect(instead).not.toBe('');
    expect(reason).not.toBe('');
  });

  test.each([...CODE, ...DOCS])('$path', (each) => {
    expect(findings(each)).toEqual([]);
  });
});
