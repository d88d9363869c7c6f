/**
 * The processor of a rank, as the library tells it of work. Times are microseconds.
 *
 * Where time is virtual (ranks that are tasks on a modelled fabric), work takes time only if it is reported here, and
 * memory that ranks share may be touched only in the order of that time: `ModelledProcessor` does both.
 * docs/virtual-time.md has the rules: when a task must let events pass, when it must look again, and what a look costs.
 *
 * A real rank's work takes the time that it takes, and its loads and stores are in the order that the machine gives
 * them: `REAL_PROCESSOR` does nothing. So callers need not ask which of the two they have. A process of real ranks has
 * only that one, so V8 sees one class at each call, and inlines calls that do nothing.
 */
import type { CompletionQueue } from './completion-queue.ts';
import type { Context } from './device.ts';

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

/** What ranks of a node pay for a word that they share. */
export interface SharedWordCosts {
  /** An atomic instruction on a word that another core had last. */
  readonly atomic: number;
  /** What each rank that spins on a word adds when the word changes hands. */
  readonly waiter: number;
}

export interface Processor {
  // ---- which it is --------------------------------------------------------------------------------------------------

  /**
   * Whether time is virtual. To be asked only where real ranks do something else that costs, not where they do nothing:
   * they go by the clock, look again where no bell rings, or leave out what the model alone has to know.
   */
  readonly isVirtual: boolean;
  /** What the processor has spent so far; `undefined` where nothing counts it. */
  readonly use: ProcessorUse | undefined;

  // ---- what takes time ----------------------------------------------------------------------------------------------

  /** Spends this time. */
  spend(microseconds: number): void;
  /** Spends the time of copying these bytes from memory to memory. */
  copy(bytes: number): void;
  /** Spends the time of packing puts of a superstep, or placing them. @param bytes that are copied, with headers */
  record(bytes: number, records?: number): void;
  /** Spends the time of combining these bytes of two operands. */
  combine(bytes: number): void;
  /** Spends the time of starting a reduction: temporary memory, the first copy. */
  reduction(): void;
  /** Spends the time of an atomic instruction on memory that the ranks of a node share. */
  atomic(): void;

  // ---- memory that ranks of a node share ----------------------------------------------------------------------------

  /** Zeros where time is not virtual. */
  readonly node: SharedWordCosts;
  /**
   * Whether code that runs now has a defined place in virtual time. A rank's own task has none between two waits: tasks
   * that continue at the same time run one after the other in no defined order. Only code with a defined place may
   * access memory that the ranks of a node share.
   */
  readonly inOrder: boolean;
  /**
   * Calls `access` at a defined place in virtual time: at once, or when the task's step is over. Then checks again what
   * the rank waits for.
   */
  touch(access: () => void): void;
  /** Wakes a rank of the node, as `context.wake`, so much later. @param context this rank's */
  wake(context: Context, member: number, later: number): void;

  // ---- events -------------------------------------------------------------------------------------------------------

  /**
   * Lets the next event happen, in a call that must not return before its requests are answered. Tasks that the event
   * wakes continue after this one. Errors: `ERR_RMA_WOULD_DEADLOCK` if the answer cannot come any more.
   */
  letPass(): void;
  /**
   * Announces that the next request only asks for a change, and makes no progress if there is none. The simulator uses
   * it to detect ranks that would ask for ever.
   */
  asks(): void;
  /** Completions that the rank has fetched; always 0 where time is not virtual. */
  readonly fetched: number;
  /** Has every wait of the rank look once more: what some of them wait for was fetched after they had looked. */
  lookAgain(): void;

  // ---- beside a computation -----------------------------------------------------------------------------------------

  /** Whether the fabric has a helper that handles events while the rank computes (`host.helper`). */
  readonly hasHelper: boolean;
  /**
   * Has `handler` called when the adapter raises an event (a low watermark) while the rank computes, if the fabric has
   * a helper for that. The handler runs in an event, at its own time. @returns ends it
   */
  handleEvents(handler: () => void): () => void;
  /**
   * As `handleEvents`, also when a completion comes, or has come before the computation and was not fetched.
   * @param wants whether it wants to be called now for a completion of a queue, which may be that of a receive
   */
  handleCompletions(handler: () => void, wants: (cq: CompletionQueue, receives: boolean) => boolean): () => void;
}

const nothing = (): void => {};

class RealProcessor implements Processor {
  readonly isVirtual = false;
  readonly use = undefined;
  readonly node: SharedWordCosts = Object.freeze({ atomic: 0, waiter: 0 });
  readonly inOrder = true;
  readonly fetched = 0;
  readonly hasHelper = false;

  spend(): void {}

  copy(): void {}

  record(): void {}

  combine(): void {}

  reduction(): void {}

  atomic(): void {}

  touch(access: () => void): void {
    access();
  }

  wake(context: Context, member: number): void {
    context.wake(member);
  }

  letPass(): void {}

  asks(): void {}

  lookAgain(): void {}

  handleEvents(): () => void {
    return nothing;
  }

  handleCompletions(): () => void {
    return nothing;
  }
}

/** That of all ranks whose time is the clock's; also for work that is free on a modelled fabric. */
export const REAL_PROCESSOR: Processor = Object.freeze(new RealProcessor());
