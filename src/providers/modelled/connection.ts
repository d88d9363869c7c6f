/** What a queue pair is connected to, which way leads there, and how far what it has sent has come on that way. */
import { WrOpcode } from '../../verbs/queue-pair.ts';
import type { TcpEnd } from './ethernet/tcp-connection.ts';
import type { ModelledParent, ModelledPeer } from './modelled-parent.ts';

export class Connection {
  destMember = -1;
  /** When the last byte of its last long message has left the adapter. */
  lastGone = 0;
  /** Messages of this queue pair come in order: when the last one comes, and when it is carried out. */
  lastArrival = 0;
  lastExecuted = 0;
  /** Until then none is carried out: one waits until writes before it are in memory. */
  heldUntil = 0;
  readonly #context: ModelledParent;
  readonly #number: number;
  #destNumber = 0;
  /** Messages that have gone and come on this connection, and whether their buffer is one that every poll looks at. */
  #messages = 0;
  #isPolled = false;
  #tcp: TcpEnd | undefined;

  /** @param number of the queue pair at this end */
  constructor(context: ModelledParent, number: number) {
    this.#context = context;
    this.#number = number;
  }

  connect(member: number, number: number): void {
    this.destMember = member;
    this.#destNumber = number;
  }

  disconnect(): void {
    this.#tcp?.forget();
    this.#tcp = undefined;
    this.destMember = -1;
    this.endPolling();
  }

  /** Nothing comes by this connection any more. */
  endPolling(): void {
    this.#messages = 0;
    if (!this.#isPolled) return;
    this.#isPolled = false;
    this.#context.polled--;
  }

  /** The queue pair at the other end, if it is there and connected to this one. */
  peer(): ModelledPeer | undefined {
    if (this.destMember < 0) return undefined;
    const context = this.#context.shared.contexts[this.destMember];
    const peer = context?.queuePairs.get(this.#destNumber);
    return peer?.connection.leadsTo(this.#context.member, this.#number) ? peer : undefined;
  }

  leadsTo(member: number, number: number): boolean {
    return this.destMember === member && this.#destNumber === number;
  }

  /** Whether the way to the other end is the memory of the node. */
  goesByMemory(opcode: number): boolean {
    const { node } = this.#context.fabric;
    const message = opcode === WrOpcode.SEND || opcode === WrOpcode.SEND_WITH_IMM;
    return (message ? node.messagesByMemory : node.rdmaByMemory) === 1 && this.#context.near(this.destMember);
  }

  /** This end of the TCP connection that requests go by, on an Ethernet; undefined where they go another way. */
  get tcp(): TcpEnd | undefined {
    const { shared, member } = this.#context;
    const { ethernet } = shared;
    if (ethernet === undefined || this.#context.near(this.destMember)) return undefined;
    if (this.#tcp === undefined || this.#tcp.isBroken)
      this.#tcp = ethernet.connect(member, this.#number, this.destMember, this.#destNumber);
    return this.#tcp;
  }

  countMessage(): void {
    if (this.goesByMemory(WrOpcode.SEND)) return;
    const context = this.#context;
    const { pollThreshold, pollLimit } = context.fabric.host;
    if (++this.#messages !== pollThreshold + 1 || context.polled >= pollLimit) return;
    this.#isPolled = true;
    context.polled++;
  }
}
