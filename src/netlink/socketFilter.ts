/**
 * Which messages a netlink socket gets, as a classic BPF program that the kernel runs before it queues one. What is
 * dropped there costs neither room in the socket's buffer nor a thread's time: a cold start of ours would arrive with
 * a hundred thousand messages. Numbers from linux/filter.h.
 */
import { LITTLE_ENDIAN } from './codec.ts';

const LOAD_WORD = 0x20;
const LOAD_HALF = 0x28;
const JUMP_IF_EQUAL = 0x15;
const RETURN = 0x06;
export const FILTER_INSTRUCTION_BYTES = 8;
const EVERYTHING = 0xffffffff;
/** struct nlmsghdr */
const TYPE_OFFSET = 4;
const SENDER_OFFSET = 12;

type Instruction = readonly [code: number, value: number, ifTrue?: number, ifFalse?: number];

/**
 * `notFrom`: names of sockets (port ids) whose requests cause no notification. `onlyType`: only messages of this type; all
 * messages of a datagram are taken to be of the first one's.
 */
export function filterProgram(notFrom: readonly number[], onlyType?: number): Uint8Array {
  const drop: Instruction = [RETURN, 0];
  const instructions: Instruction[] = [];
  if (onlyType !== undefined)
    instructions.push([LOAD_HALF, TYPE_OFFSET], [JUMP_IF_EQUAL, bigEndian(onlyType, 16), 1], drop);
  instructions.push([LOAD_WORD, SENDER_OFFSET]);
  for (const sender of notFrom) instructions.push([JUMP_IF_EQUAL, bigEndian(sender, 32), 0, 1], drop);
  instructions.push([RETURN, EVERYTHING]);
  const view = new DataView(new ArrayBuffer(instructions.length * FILTER_INSTRUCTION_BYTES));
  for (const [index, [code, value, ifTrue = 0, ifFalse = 0]] of instructions.entries()) {
    const offset = index * FILTER_INSTRUCTION_BYTES;
    view.setUint16(offset, code, LITTLE_ENDIAN);
    view.setUint8(offset + 2, ifTrue);
    view.setUint8(offset + 3, ifFalse);
    view.setUint32(offset + 4, value, LITTLE_ENDIAN);
  }
  return new Uint8Array(view.buffer);
}

/** BPF reads in network order; netlink headers are in the machine's. */
function bigEndian(value: number, bits: 16 | 32): number {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, bits === 16 ? value << 16 : value);
  return bits === 16 ? view.getUint16(0, LITTLE_ENDIAN) : view.getUint32(0, LITTLE_ENDIAN);
}
