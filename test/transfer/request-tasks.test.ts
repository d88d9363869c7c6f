/** Tasks of a window by requests whose requests are posted ahead of their turn: in which order what is carried out. */
import { describe, expect, test } from 'vitest';
import { type Ahead, type Hold, type HoldingSteps, RequestTasks } from '../../src/transfer/requests/request-tasks.ts';
import { randomBelow } from '../support/random-below.ts';

/** An owner that carries out requests in the order of posting, unless something is locked. */
class Owner {
  readonly done: number[] = [];
  locked = false;
  round = 0;
  readonly #posted: { readonly request: Request; readonly round: number }[] = [];

  post(request: Request, round: number): void {
    this.#posted.push({ request, round });
  }

  /** Answers the oldest request. */
  answer(): void {
    const { request, round } = this.#posted.shift() ?? {};
    if (request === undefined) return;
    request.over = true;
    if (round !== this.round) return;
    if (this.locked) this.round++;
    else {
      request.good = true;
      this.done.push(request.number);
    }
  }

  get waiting(): number {
    return this.#posted.length;
  }
}

/** Those of a rank, with the round that it believes in. */
class Origin {
  round = 0;
}

class Request implements Ahead {
  over = false;
  good = false;
  readonly number: number;
  readonly #owner: Owner;
  readonly #origin: Origin;
  #round = 0;

  constructor(number: number, owner: Owner, origin: Origin) {
    this.number = number;
    this.#owner = owner;
    this.#origin = origin;
  }

  post(): void {
    this.#round = this.#origin.round;
    this.#owner.post(this, this.#round);
  }

  isOver(): boolean {
    return this.over;
  }

  end(): boolean {
    if (!this.good && this.#round === this.#origin.round) this.#origin.round++;
    return this.good;
  }
}

const failures: unknown[] = [];
const tasksOf = (): RequestTasks => new RequestTasks((error) => failures.push(error), { turn: 0 });

describe('requests ahead of their turn', () => {
  const owner = new Owner();
  const origin = new Origin();
  const tasks = tasksOf();
  /** The long way: it takes so many looks, and then does it all the same. */
  const longWay = (number: number, looks: number) =>
    function* (hold: Hold): HoldingSteps {
      hold.has = true;
      for (let i = 0; i < looks; i++) yield;
      owner.done.push(number);
      hold.has = false;
      return true;
    };

  test('are all posted at once, and end also where nobody waits', () => {
    for (let i = 0; i < 5; i++) tasks.beginHolding(1, longWay(i, 1), new Request(i, owner, origin));
    expect(owner.waiting).toBe(5);
    while (owner.waiting > 0) owner.answer();
    tasks.run(false);
    expect(tasks.count).toBe(0);
    expect(owner.done.splice(0)).toEqual([0, 1, 2, 3, 4]);
  });

  test('are not posted behind a task that has none, before that has ended', () => {
    tasks.beginHolding(1, longWay(0, 2));
    tasks.beginHolding(1, longWay(1, 2), new Request(1, owner, origin));
    expect(owner.waiting).toBe(0);
    for (let i = 0; i < 3; i++) tasks.run(true);
    expect(owner.waiting).toBe(1);
    owner.answer();
    tasks.run(true);
    expect(owner.done.splice(0)).toEqual([0, 1]);
  });

  test('go the long way in their order when one was refused, and none is posted meanwhile', () => {
    owner.locked = true;
    for (let i = 0; i < 3; i++) tasks.beginHolding(1, longWay(i, 3), new Request(i, owner, origin));
    owner.answer();
    owner.locked = false;
    tasks.run(true);
    // The first is on the long way, and the other two are on their way with the old round.
    tasks.beginHolding(1, longWay(3, 3), new Request(3, owner, origin));
    expect(owner.waiting).toBe(2);
    owner.answer();
    owner.answer();
    for (let i = 0; i < 20; i++) tasks.run(true);
    expect(owner.waiting).toBe(1);
    expect(owner.done).toEqual([0, 1, 2]);
    owner.answer();
    tasks.run(true);
    expect(owner.done.splice(0)).toEqual([0, 1, 2, 3]);
    expect(tasks.count).toBe(0);
  });

  test('that cannot be posted go the long way, too', () => {
    const refused: Ahead = {
      post() {
        throw new Error('no memory');
      },
      isOver: () => false,
      end: () => false,
    };
    tasks.beginHolding(1, longWay(0, 1), refused);
    tasks.beginHolding(1, longWay(1, 1), new Request(1, owner, origin));
    expect(owner.waiting).toBe(0);
    for (let i = 0; i < 4; i++) tasks.run(true);
    owner.answer();
    tasks.run(true);
    expect(owner.done.splice(0)).toEqual([0, 1]);
  });

  test('whose results cannot be taken fail alone', () => {
    const lost = new Request(0, owner, origin);
    lost.end = () => {
      throw new Error('the result is gone');
    };
    tasks.beginHolding(1, longWay(0, 1), lost);
    tasks.beginHolding(1, longWay(1, 1), new Request(1, owner, origin));
    while (owner.waiting > 0) owner.answer();
    tasks.run(true);
    tasks.run(true);
    expect(failures.splice(0)).toMatchObject([{ message: 'the result is gone' }]);
    expect(tasks.count).toBe(0);
    owner.done.length = 0;
  });

  test('keep the order of the calls whatever is refused (1,000 random schedules)', () => {
    const random = randomBelow(7);
    for (let round = 0; round < 1000; round++) {
      const begun = 1 + random(200);
      for (let next = 0; next < begun || tasks.count > 0; ) {
        const step = random(5);
        if (step < 2 && next < begun) {
          const ahead = random(5) > 0 ? new Request(next, owner, origin) : undefined;
          tasks.beginHolding(1, longWay(next++, random(3)), ahead);
        } else if (step === 2) owner.answer();
        else if (step === 3) tasks.run(random(2) === 0);
        else owner.locked = random(3) === 0;
      }
      expect(owner.done.splice(0)).toEqual(Array.from({ length: begun }, (_, i) => i));
    }
    expect(failures).toEqual([]);
  });
});
