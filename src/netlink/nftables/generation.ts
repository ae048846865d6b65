/** The generation: a number that the kernel raises with every change to any table of the network namespace. */
import { decodeString, decodeU32be, requiredAttribute } from '../codec.ts';
import { received } from './message.ts';

export { getGeneration } from '../nftGeneration.ts';

const NFTA_GEN_ID = 1;
const NFTA_GEN_PROC_PID = 2;
const NFTA_GEN_PROC_NAME = 3;

export interface Generation {
  readonly id: number;
  /**
   * Who made it, when it is news; who asks, when it is the answer to a question. It is the number of the thread, as the
   * machine's first PID namespace counts, and not what a process knows itself by.
   */
  readonly processId: number | undefined;
  readonly processName: string | undefined;
}

export function decodeGenerationNews(payload: Uint8Array): Generation {
  const { attributes } = received(payload);
  const processId = attributes.get(NFTA_GEN_PROC_PID);
  const processName = attributes.get(NFTA_GEN_PROC_NAME);
  return {
    id: decodeU32be(requiredAttribute(attributes, NFTA_GEN_ID, 'the number of a generation')),
    processId: processId && decodeU32be(processId),
    processName: processName && decodeString(processName),
  };
}
