/**
 * Virtual time: what happens on a modelled fabric, in order, and the tasks that it wakes.
 *
 * Time is a number of microseconds that goes from event to event. All events of one time take place before a task that
 * one of them has woken goes on.
 *
 * **Tasks and the order of their steps.** A task is JavaScript of the caller's, between two waits. The simulator must
 * not let time go on before every task that runs has come to its next wait, or it could post something in the past. It
 * cannot see that from the waits that are pending, since a task may wait for several things at once, or for promises
 * that have nothing to do with the fabric. But the platform says it exactly: a callback of `setImmediate` runs when no
 * microtask is left. So the loop resolves the waits that are over, takes one such turn of the event loop, and goes on.
 * That is a microsecond for each time at which waits end, not for each event: operations are advanced by the loop
 * itself (`Watcher.notice`), without promises, until they are complete.
 *
 * **Why the same seed gives the same run, whatever the version of the engine.** Tasks that are woken at one time run
 * between each other in an order that depends on how many microtasks their `await`s take. So nothing may depend on that
 * order. A task touches nothing of the simulator's or of another task's; all it does is put events into the queue, and
 * an event's place there is its time, then the rank that made it, then its number among those of that rank (`order`). A
 * rank's own steps are in the order of its program. So the queue gives the same events in the same order, however the
 * tasks were interleaved; links, adapters and memories change in events only. There is no clock and no random number
 * but the seeded ones.
 *
 * **Processors.** The steps of a rank take no time by themselves. What costs its processor time says so (`Cpu.spend`),
 * which puts the rank's own clock ahead of the fabric's: what it posts next, it posts at that time. A rank whose clock
 * is ahead is busy: what arrives for it is looked at when its clock is reached.
 */
import { RmaError } from '../../errors.ts';
import { EventQueue, type FabricEvent } from './event-queue.ts';
import { Random } from './random.ts';

/**
 * Events between two turns of the event loop, if no task is woken: so a long simulation does not keep signals and
 * timers of the process from being seen to.
 */
const TURN = 200_000;
/**
 * When ranks ask again and again (`askedInVain`), time is counted in generations: a generation is over when everything
 * has happened that was due to happen when it began. So each further step on the way of a request, or of a rank from
 * one look to the next, takes one generation at most, however long it takes. If nothing has changed for so many, each
 * rank has asked anew what it waits for, and has looked at the answer, and nothing has come of it: any rank that could
 * have got on would have. The longest way to that: the answer to what was asked before the change, a rest, and three
 * requests, one after the other (`remote`: its turn, the word, the swap). A request is 8 steps: sent, arrived, carried
 * out, perhaps after earlier writes were placed, gone back, come back, the rank is rung for, it is no longer busy.
 * Where messages are lost, there are up to 7 times 3 more: sent, not answered, to be sent again.
 */
const GENERATIONS = 4 * 8 + 20;
const GENERATIONS_WITH_LOSSES = 4 * (8 + 7 * 3) + 20;
/**
 * The least microseconds that a generation takes: a rank that asks again rests for at most 2000
 * (sync/lock/lock-back-off.ts), and where it looks meanwhile, too, no event says so. That is at most half of those 20.
 */
const GENERATION = 250;
/** Events that a call may let pass before it must have its answer; what it counts as if there is none. */
const MOST_PASSES = 1_000_000;
const EMPTY_PASS = 50;
/** Events of a rank that its number in `order` has room for, and, above them, the ranks. */
const RANK_EVENTS = 2 ** 37;

export interface DeadlineEvent extends FabricEvent {
  /** It has nothing to do any more. */
  readonly isOver: boolean;
  /** It was over when its time came, and is not in the queue any more. */
  dropped?(): void;
}

/** What a simulator tells the code that runs tasks on it. */
export interface Observer {
  /** Nothing is left to happen, and no task goes on. */
  idle(): void;
  /** All that happens is that ranks ask again and again for what will never change. */
  stuck(): void;
  /** An event has thrown. */
  failed(error: unknown): void;
}

export class Simulator {
  /** Virtual microseconds. */
  now = 0;
  /** Events that have taken place. */
  happened = 0;
  observer: Observer | undefined;
  /**
   * What will change something by itself: messages, but for requests that only ask whether something has changed
   * (`Cpu.asking`), tasks that compute, deadlines.
   */
  underWay = 0;
  /**
   * Tasks that wait for nothing on the fabric: they run, or wait for something else. Time goes on for them too, but not
   * before each has had a turn of the event loop.
   */
  outside = 0;
  readonly seed: number;
  readonly #queue = new EventQueue();
  /** Tasks' waits that are over, to be resolved before time goes on. */
  #over: (() => void)[] = [];
  #scheduled = false;
  #running = false;
  #stopped = false;
  /** Deadlines: one that has nothing to do any more does not move the time on. */
  readonly #deadlines = new EventQueue();
  /** The time of the latest event that was ever put into the queue, deadlines not counted. */
  #latest = 0;
  /** Generations in which nothing has changed; negative until a rank has asked in vain since the last change. */
  #unchanged = -1;
  /** As many as must be before nothing will change any more. */
  #enough = GENERATIONS;
  /** All that was in the queue when the present generation began is over after that time. */
  #horizon = 0;
  /** Nothing happens until a task has something done. */
  #paused = false;
  #passed = 0;
  #depth = 0;
  /** 0, or what the order of ranks at one time is mixed from. */
  readonly #shuffle: number;
  readonly #made: Float64Array;

  /** @param shuffle events of one time come in random order, instead of that of the ranks */
  constructor(ranks: number, seed: number, shuffle: boolean) {
    this.seed = seed;
    this.#made = new Float64Array(ranks);
    this.#shuffle = shuffle ? new Random(seed, 1).bits() | 1 : 0;
  }

  /** @param rank the rank that makes the event */
  at(time: number, rank: number, event: FabricEvent): void {
    const when = time < this.now ? this.now : time;
    if (when > this.#latest) this.#latest = when;
    this.#queue.push(when, this.#orderAt(when, rank), event);
    if (!this.#scheduled && !this.#running) this.#schedule();
  }

  /** An event that may have nothing to do by then. */
  atDeadline(time: number, rank: number, deadline: DeadlineEvent): void {
    this.#deadlines.push(time, this.#orderAt(time, rank), deadline);
    if (!this.#scheduled && !this.#running) this.#schedule();
  }

  /** Events of one rank and time keep their order when ranks are shuffled. */
  #orderAt(when: number, rank: number): number {
    const count = this.#made[rank]++;
    return (this.#shuffle === 0 ? rank : this.#placeOf(when, rank)) * RANK_EVENTS + count;
  }

  /** A task goes on at the present time, once all events of it have taken place. */
  resume(go: () => void): void {
    this.#over.push(go);
    if (!this.#scheduled && !this.#running) this.#schedule();
  }

  /**
   * A rank has asked in vain, and will ask again. When all that has happened for so many generations is such asking,
   * nothing will change any more, unless by a task that waits for something else than the fabric: for that, time stands
   * still.
   */
  askedInVain(): void {
    if (this.underWay > 0) {
      this.#unchanged = -1;
      return;
    }
    if (this.#unchanged >= 0 && this.now <= this.#horizon) return;
    this.#unchanged++;
    this.#horizon = Math.max(this.#latest, this.now + GENERATION);
    if (this.#unchanged < this.#enough) return;
    this.#unchanged = -1;
    if (this.outside > 0) this.#paused = true;
    else this.observer?.stuck();
  }

  /** A message was lost. */
  lost(): void {
    this.#enough = GENERATIONS_WITH_LOSSES;
  }

  /** Memory somewhere has changed, or will change: a rank that asks may find something. */
  changed(): void {
    this.#unchanged = -1;
  }

  /** A wait is over: some rank gets on. */
  gotOn(): void {
    this.#unchanged = -1;
    this.#passed = 0;
  }

  /** Nothing more happens. */
  stop(): void {
    this.#stopped = true;
  }

  /** Lets the next thing happen, in this call. Throws when the caller asks on and on, and no answer will come. */
  letPass(): void {
    const empty = !this.#isLeft();
    this.#passed += empty ? EMPTY_PASS : 1;
    if (this.#passed > MOST_PASSES) {
      this.#passed = 0;
      throw new RmaError(
        'ERR_RMA_WOULD_DEADLOCK',
        'a blocking call waits for the answer to a request, but no rank can answer it any more',
      );
    }
    if (!empty) this.#step();
  }

  /**
   * Lets everything happen, in this call, that can happen without a task's doing, until `enough` says so. For contexts
   * that no tasks use.
   */
  drain(enough: () => boolean): void {
    while (this.#isLeft() && !enough()) this.#step();
  }

  /** Whether anything is left to happen. Removes deadlines that would be next but have nothing to do. */
  #isLeft(): boolean {
    const deadlines = this.#deadlines;
    while (this.#next === deadlines && (deadlines.first as DeadlineEvent).isOver) {
      (deadlines.pop() as DeadlineEvent).dropped?.();
    }
    return this.#next.size > 0;
  }

  /** Where what happens next is, if anything does. */
  get #next(): EventQueue {
    const deadlines = this.#deadlines;
    const queue = this.#queue;
    if (deadlines.size === 0) return queue;
    if (queue.size === 0 || deadlines.time < queue.time) return deadlines;
    return deadlines.time === queue.time && deadlines.order < queue.order ? deadlines : queue;
  }

  /**
   * A rank's place in an order of the ranks that is another one at each time. Each step maps 16 bits to 16 bits one to
   * one, so no two ranks get the same place. It does not depend on the order of the calls.
   */
  #placeOf(time: number, rank: number): number {
    bits[0] = time;
    const salt = Math.imul(words[0] ^ Math.imul(words[1], 0x9e3779b1) ^ this.#shuffle, 0x21f0aaad);
    let x = (rank ^ (salt >>> 16)) & 0xffff;
    x = Math.imul(x, 0x6a45) & 0xffff;
    x ^= x >>> 7;
    x = Math.imul(x ^ (salt & 0xffff), 0x9e3b) & 0xffff;
    return x ^ (x >>> 9);
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#scheduled = true;
    setImmediate(this.#run);
  }

  #step(): void {
    const queue = this.#next;
    this.now = queue.time;
    this.happened++;
    this.#depth++;
    try {
      queue.pop().happen();
    } finally {
      this.#depth--;
    }
  }

  /** Whether an event is taking place, and not a task's step. */
  get inEvent(): boolean {
    return this.#depth > 0;
  }

  readonly #run = (): void => {
    this.#scheduled = false;
    this.#running = true;
    this.#paused = false;
    let turned = true;
    try {
      for (let events = 0; this.#isLeft() && events < TURN && !this.#stopped && !this.#paused; events++) {
        if (this.#next.time > this.now && (this.#over.length > 0 || (this.outside > 0 && !turned))) break;
        turned = false;
        this.#step();
      }
    } catch (error) {
      this.#running = false;
      if (this.observer === undefined) throw error;
      this.observer.failed(error);
      return;
    }
    this.#running = false;
    const over = this.#over;
    if (over.length > 0) {
      this.#over = [];
      for (const go of over) go();
    } else if (!this.#isLeft()) {
      if (!this.#stopped) this.observer?.idle();
      return;
    }
    if (!this.#scheduled && !this.#paused) this.#schedule();
  };
}

const bits = new Float64Array(1);
const words = new Int32Array(bits.buffer);

/** One wait of a rank: looked at when something has happened that it may be waiting for. */
export interface Watcher {
  /** Does what can be done now. The rank's processor is free. */
  notice(): void;
}

/** The processor of one rank. */
export class Cpu implements FabricEvent {
  readonly rank: number;
  readonly #simulator: Simulator;
  /** Until then it is busy. */
  #clock = 0;
  #looking = false;
  #watcher: Watcher | undefined;
  /** It must look once more when something waits here. */
  #lookDue = false;
  /** It was rung for while nothing waited here, and has not looked since. */
  #hasMissed = false;
  /** Completions that it has fetched. */
  fetched = 0;
  /** The rank has died: nothing happens here any more. */
  dead = false;
  /** What is posted next only asks whether something has changed (`Processor.asks`). */
  asking = false;
  /** Computations of its task that have not ended: it does nothing else until its clock is reached. */
  computations = 0;
  /** Told when a computation has begun. */
  whenComputing: (() => void) | undefined;
  /** What handlers of interrupts have taken of its time, altogether. */
  interrupted = 0;
  /** What it has spent on the library, on computations of the task's, and what handlers have spent on another core. */
  library = 0;
  computed = 0;
  helped = 0;
  /** Until then, the helper that handles events beside the task is busy. */
  #handlerClock = 0;
  #waits = 0;
  #hasLeft = false;
  /** When it looks again though nothing may have changed. */
  #again = Number.POSITIVE_INFINITY;

  constructor(simulator: Simulator, rank: number) {
    this.#simulator = simulator;
    this.rank = rank;
  }

  /** The rank's own time. */
  get time(): number {
    const { now } = this.#simulator;
    return this.#clock > now ? this.#clock : now;
  }

  /** Passes processor time. */
  spend(microseconds: number): void {
    this.#clock = this.time + microseconds;
    this.library += microseconds;
  }

  /** Passes processor time that the task itself wants. */
  compute(microseconds: number): void {
    this.#clock = this.time + microseconds;
    this.computed += microseconds;
  }

  /**
   * Does something beside the task, which computes: what it posts, it posts at the present time, and not when the
   * computation is over.
   * @param takes whether the computation loses the time that this spends, `before` it included
   */
  handle(work: () => void, takes: boolean, before: number): void {
    const task = this.#clock;
    const begun = Math.max(this.#handlerClock, this.#simulator.now);
    const { library } = this;
    this.#clock = begun;
    try {
      work();
    } finally {
      this.#handlerClock = this.time;
      const taken = takes ? this.#handlerClock - begun + before : 0;
      this.#clock = task + taken;
      this.interrupted += taken;
      if (takes) this.library += before;
      else {
        this.helped += this.library - library;
        this.library = library;
      }
    }
  }

  /**
   * Something has changed that this rank may be waiting for. It looks as soon as it is not busy, once for whatever has
   * changed by then.
   */
  ring(): void {
    if (this.#looking || this.dead) return;
    if (this.#watcher === undefined) {
      this.#hasMissed = true;
      return;
    }
    this.#looking = true;
    this.#simulator.at(this.time, this.rank, this);
  }

  /**
   * Rings for what came while nothing waited here. A wait that begins looks itself for what it is about, so most of
   * that is seen by then; what other ranks may wait for is not.
   * @returns false if nothing came, or nothing waits
   */
  ringForMissed(): boolean {
    if (!this.#hasMissed || this.#watcher === undefined || this.dead) return false;
    this.ring();
    return true;
  }

  /** What waits here; undefined: nothing does any more. */
  watchFor(watcher: Watcher | undefined): void {
    this.#watcher = watcher;
    if (watcher === undefined || !this.#lookDue) return;
    this.#lookDue = false;
    this.ring();
  }

  /** What has come was fetched when some waits for it had already looked: all look once more. */
  lookAgain(): void {
    if (this.#watcher === undefined) this.#lookDue = true;
    else this.ring();
  }

  /** The rank's task waits for one thing more. */
  beginWait(): void {
    if (this.#waits++ === 0 && !this.#hasLeft) this.#simulator.outside--;
  }

  endWait(): void {
    if (--this.#waits === 0 && !this.#hasLeft) this.#simulator.outside++;
  }

  get isWaiting(): boolean {
    return this.#waits > 0;
  }

  /** The rank's task has ended, or the rank is dead: whatever its program still does is not of the simulation. */
  leave(): void {
    if (this.#waits === 0 && !this.#hasLeft) this.#simulator.outside--;
    this.#hasLeft = true;
  }

  /**
   * Has it look again after a while, though nothing may have changed. Of several such times the first counts: when it
   * has looked, it is asked again.
   */
  ringAfter(microseconds: number): void {
    const when = this.time + microseconds;
    if (when >= this.#again) return;
    this.#again = when;
    this.#simulator.at(when, this.rank, {
      happen: () => {
        if (this.#again !== when) return;
        this.#again = Number.POSITIVE_INFINITY;
        this.ring();
      },
    });
  }

  happen(): void {
    this.#looking = false;
    if (this.dead) return;
    // It was given work since.
    if (this.#clock > this.#simulator.now) this.ring();
    else if (this.#watcher === undefined) this.#hasMissed = true;
    else {
      this.#hasMissed = false;
      this.#watcher.notice();
    }
  }
}
