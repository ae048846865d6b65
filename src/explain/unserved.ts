/** Why a Service that exists is not served. */
import type { UnservedService } from './subject.ts';

/** By what the reader of objects says (`src/model/project/service.ts`). */
const CODES: Readonly<Record<string, UnservedService['code']>> = {
  'it is headless': 'headless',
  'it is an ExternalName': 'external-name',
  'it is for another proxy': 'other-proxy',
  'it has no cluster IP': 'no-cluster-ip',
};

/** `reason`: why it is left alone, or what is wrong with it. */
export function unservedFor(reason: string, where?: string): UnservedService {
  return { code: CODES[reason] ?? 'invalid', reason, ...(where !== undefined && { where }) };
}
