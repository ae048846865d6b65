/** The source serves from everything that a real API server was seen to answer and that can be served from. */
import { describe, expect, it } from 'vitest';
import type { ApiAccess } from '../../../src/sources/api/credentials/identity.ts';
import { MemoryNetwork } from '../../support/apiServer/memoryNetwork.ts';
import {
  type Asked,
  bookmark,
  event,
  type Item,
  list,
  playScript,
  REPLIES,
  type Reply,
  service,
  streamedList,
  watch,
} from './exchanges.ts';
import { openAccess, startSource } from './harness.ts';

const S1 = service('s1', '10.96.0.11', 60);
const S2 = service('s2', '10.96.0.12', 66);
const S3 = service('s3', '10.96.0.13', 67);
const NODE: Item = { metadata: { name: 'node1', resourceVersion: '5' } };

const resourceOf = ({ path }: Asked): string => path.slice(path.lastIndexOf('/') + 1);
const isStream = ({ query }: Asked): boolean => query['sendInitialEvents'] === 'true';
const isWatch = ({ query }: Asked): boolean =>
  query['watch'] === 'true' && query['sendInitialEvents'] !== 'true';

type Served = Awaited<ReturnType<typeof startSource>> & { readonly asked: readonly Asked[] };

/** The script is for services; the others are there, and quiet. */
async function serve(script: (asked: Asked) => Reply, access = openAccess): Promise<Served> {
  const network = new MemoryNetwork();
  const { url, asked } = playScript(network, (question) => {
    const resource = resourceOf(question);
    if (resource === 'readyz') return { status: 200, body: 'ok' };
    if (resource === 'services' || resource === 'servicecidrs') return script(question);
    if (question.query['watch'] !== 'true') return list(resource, 70, resource === 'nodes' ? [NODE] : []);
    return isStream(question) ? REPLIES.streamRefused : watch(bookmark(resource, 70));
  });
  return { ...(await startSource(network, access(url), { withServiceCIDRs: true })), asked };
}

/** Answers for ServiceCIDRs, or the given one for services. */
function services(script: (asked: Asked) => Reply): (asked: Asked) => Reply {
  return (asked) => (resourceOf(asked) === 'services' ? script(asked) : REPLIES.noSuchVersion);
}

async function lines({ told, until }: Served, ...wanted: readonly string[]): Promise<readonly string[]> {
  const all: string[] = [];
  await until(wanted.join(), () => {
    all.push(...told());
    return wanted.every((line) => all.includes(line));
  });
  return all;
}

describe('over an etcd without progress notifications', () => {
  it('the list comes whole from the cache, whatever the limit, and is watched from there', async () => {
    const served = await serve(
      services((asked) => {
        if (isStream(asked)) return REPLIES.streamRefused;
        if (!isWatch(asked)) return list('services', 70, [S1, S2, S3]);
        if (asked.query['resourceVersion'] !== '70') return watch();
        const y = service('s1', '10.96.0.21', 72);
        const gone = service('s3', '10.96.0.13', 73);
        const frames = [event('services', 'MODIFIED', y), event('services', 'DELETED', gone)];
        return { ...watch(frames.join('') + bookmark('services', 73).repeat(3)), stays: false };
      }),
    );
    await lines(served, '+ Service lab/s2', 'synced', '~ Service lab/s1', '- Service lab/s3');
    // A version of a group that is not served: ServiceCIDRs are gone without.
    expect(served.isSynced()).toBe(true);
    const resumed = (): boolean => served.asked.some(({ query }) => query['resourceVersion'] === '73');
    await served.until('the watch is resumed from the last bookmark', resumed);
    expect(served.asked.filter((each) => resourceOf(each) === 'services' && isStream(each))).toHaveLength(1);
  });
});

describe('a version that is lost', () => {
  it('in the watch, the stream and the list leads to the latest, in pages, and without pages if those are lost', async () => {
    let isLost = false;
    const served = await serve(
      services((asked) => {
        const { query } = asked;
        if (!isLost) {
          isLost = isWatch(asked);
          if (isLost) return REPLIES.tooOld;
          // Silence on a watch: one object of a list says what the version is now.
          if (!isStream(asked)) return list('services', 999, [S1]);
          return watch(streamedList('services', 999, [S1, S3]));
        }
        if (isStream(asked)) return REPLIES.streamFromTheFuture;
        if (isWatch(asked)) return watch();
        if (query['resourceVersion'] !== undefined) return REPLIES.fromTheFuture;
        if (query['continue'] !== undefined) return REPLIES.badContinue;
        if (query['limit'] === undefined) return list('services', 73, [S1, S2]);
        return list('services', 73, [S1], { continue: 'eyJ2Ijoi', remainingItemCount: 1 });
      }),
    );
    await lines(served, '+ Service lab/s1', '+ Service lab/s3', 'synced');
    // The stream that was a watch as well ends with its time.
    const told = await lines(served, '+ Service lab/s2', '- Service lab/s3');
    expect(told).not.toContain('- Service lab/s1');
  });
});

describe('a watch from the future', () => {
  it('is silent; what the server has is asked for before long', async () => {
    let isRestored = false;
    const served = await serve(
      services((asked) => {
        if (isStream(asked)) return REPLIES.streamRefused;
        if (isWatch(asked)) {
          isRestored = true;
          return watch();
        }
        return isRestored ? list('services', 73, [S2]) : list('services', 999, [S1]);
      }),
    );
    await lines(served, '+ Service lab/s1', 'synced');
    const told = await lines(served, '- Service lab/s1', '+ Service lab/s2');
    expect(told).toHaveLength(2);
  });
});

describe('a token that the server does not know', () => {
  it('is read again', async () => {
    let token = 'old';
    const access = (url: string): ApiAccess => {
      const open = openAccess(url);
      return {
        ...open,
        identity: async () => ({ ...(await open.identity()), authorization: `Bearer ${token}` }),
        renew: async () => {
          token = 'new';
          return true;
        },
      };
    };
    const served = await serve((asked) => {
      if (asked.authorization !== 'Bearer new') return REPLIES.unauthorized;
      const resource = resourceOf(asked);
      if (isStream(asked)) return watch(streamedList(resource, 70, resource === 'services' ? [S1] : []));
      return watch();
    }, access);
    await lines(served, '+ Service lab/s1', 'synced');
    expect(served.asked.some(({ authorization }) => authorization === 'Bearer old')).toBe(true);
  });
});
