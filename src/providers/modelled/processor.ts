/**
 * The rank's processor on a modelled fabric, where work besides the verbs takes virtual time only if it is reported
 * here. Times are microseconds.
 */
import type { CompletionQueue } from '../../verbs/completion-queue.ts';
import type { Fabric } from './fabric-numbers.ts';
import type { ModelledContext } from './modelled-context.ts';

/** Virtual microseconds that a rank's processor has spent since the run began. */
export interface ProcessorUse {
  /**
   * In the library: posting requests and receives, fetching completions, copying, combining, handling events that have
   * interrupted a computation.
   */
  readonly library: number;
  /** On another core, by the helper that handles events while the rank computes (`host.helper: 2`). */
  readonly helper: number;
  /** In `world.compute`. */
  readonly computed: number;
}

export class ProcessorTime {
  readonly #context: ModelledContext;

  constructor(context: ModelledContext) {
    this.#context = context;
  }

  /** What the processor has spent so far. */
  get use(): ProcessorUse {
    const { library, helped, computed } = this.#context.cpu;
    return { library, helper: helped, computed };
  }

  /** Spends this time on computation. */
  spend(microseconds: number): void {
    this.#context.cpu.spend(microseconds);
  }

  /** Spends the time of copying these bytes from memory to memory. */
  copy(bytes: number): void {
    this.spend(bytes * this.#context.fabric.host.copy);
  }

  /** Spends the time of packing puts of a superstep, or placing them. @param bytes that are copied, with headers */
  record(bytes: number, records = 1): void {
    const { copy, record } = this.#context.fabric.host;
    this.spend(bytes * copy + records * record);
  }

  /** Spends the time of combining these bytes of two operands. */
  combine(bytes: number): void {
    this.spend(bytes * this.#context.fabric.host.combine);
  }

  /** Spends the time of starting a reduction: temporary memory, the first copy. */
  reduction(): void {
    this.spend(this.#context.fabric.host.reduction);
  }

  /** Spends the time of an atomic instruction on memory that the ranks of a node share. */
  atomic(): void {
    this.spend(this.#context.fabric.node.atomic);
  }

  /** What ranks of a node pay for the memory that they share. */
  get node(): Fabric['node'] {
    return this.#context.fabric.node;
  }

  /** Wakes a rank of the node, as `Context.wake`, so much later. */
  wake(member: number, later: number): void {
    this.#context.wake(member, later);
  }

  /**
   * Whether code that runs now has a defined place in virtual time. A rank's own task has none between two waits: tasks
   * that continue at the same time run one after the other in no defined order. Only code with a defined place may
   * access memory that the ranks of a node share.
   */
  get inOrder(): boolean {
    return this.#context.simulator.inEvent;
  }

  /**
   * Calls `access` at a defined place in virtual time: at once, or when the task's step is over. Then checks again what
   * the rank waits for.
   */
  touch(access: () => void): void {
    if (this.inOrder) access();
    else this.#context.touch(access);
  }

  /**
   * Announces that the next request only polls for a change, and makes no progress if there is none. The simulator uses
   * it to detect ranks that would poll for ever.
   */
  asks(): void {
    this.#context.cpu.asking = true;
  }

  /**
   * Has `handler` called when the adapter raises an event (a low watermark) while the rank computes, if the fabric has
   * a helper for that (`host.helper`). The handler runs in an event, at its own time. @returns ends it
   */
  handleEvents(handler: () => void): () => void {
    return this.#context.handleEvents(handler);
  }

  /** Whether the fabric has a helper that handles events while the rank computes (`host.helper`). */
  get hasHelper(): boolean {
    return this.#context.fabric.host.helper !== 0;
  }

  /**
   * As `handleEvents`, also when a completion comes, or has come before the computation and was not fetched.
   * @param wants whether it wants to be called now for a completion of a queue, which may be that of a receive
   */
  handleCompletions(handler: () => void, wants: (cq: CompletionQueue, receives: boolean) => boolean): () => void {
    return this.#context.handleCompletions(handler, wants);
  }

  /** Completions that the rank has fetched. */
  get fetched(): number {
    return this.#context.cpu.fetched;
  }

  /** Has every wait of the rank look once more: what some of them wait for was fetched after they had looked. */
  lookAgain(): void {
    this.#context.cpu.lookAgain();
  }

  /**
   * Processes the next event, in a call that must not return before its requests are answered. Tasks that the event
   * wakes continue after this one.
   */
  letPass(): void {
    this.#context.simulator.letPass();
  }
}
