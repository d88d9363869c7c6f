/**
 * Tells a program who joins, leaves and dies: sleeps in the kernel on the service's NEWS, in a thread of its own. No
 * dead member rings there, but the kernel does for a process that ends (ProcessWatch). Each wake-up looks whether the
 * members live, and there is one now and then in any case.
 *
 * Each member tells of each other one once: it keeps the row of each place as it has told it, and compares. LAST of a
 * row says how the member before ended, where the next one has the place already.
 */
import type { Parker, ProcessWatch } from '../native.ts';
import type { Member, Members } from './service-members.ts';
import { isMember, rowOf } from './service-members.ts';
import { Header, PlaceState } from './service-memory.ts';

/** Milliseconds between two looks whether the members live. */
const LOOK_MS = 100;

export type MemberEvent = 'join' | 'leave' | 'death';

type Row = ReturnType<typeof rowOf>;

export class MembershipNews {
  readonly #members: Members;
  readonly #tell: (event: MemberEvent, member: Member) => void;
  readonly #parker: Parker;
  readonly #watch: ProcessWatch;
  /** The row of each place as it was told. */
  readonly #told: Row[];
  #isClosed = false;

  /** @param tell calls the program's listeners: what they throw is an uncaught error, and ends no later news */
  constructor(members: Members, tell: (event: MemberEvent, member: Member) => void) {
    this.#members = members;
    this.#tell = tell;
    const { memory } = members;
    this.#told = Array.from({ length: memory.places }, (_, place) => rowOf(memory, place));
    this.#watch = new memory.native.ProcessWatch(memory.header, Header.NEWS);
    for (const { pid } of members.list()) this.#watchOver(pid);
    this.#parker = new memory.native.Parker(() => this.#look());
    this.#sleep();
  }

  close(): void {
    this.#isClosed = true;
    this.#parker.close();
    this.#watch.close();
  }

  /** The kernel rings when the process ends. Where it cannot, and for threads, the look now and then has to do. */
  #watchOver(pid: number): void {
    if (pid !== process.pid) this.#watch.add(pid);
  }

  #look(): void {
    this.#members.inspect();
    this.#sleep();
  }

  #sleep(): void {
    const { header } = this.#members.memory;
    const seen = Atomics.load(header, Header.NEWS);
    this.#tellNews();
    // A listener may have left the service.
    if (!this.#isClosed) this.#parker.begin(header, Header.NEWS, seen, LOOK_MS, false);
  }

  #tellNews(): void {
    const { memory, place: own } = this.#members;
    for (let place = 0; place < memory.places && !this.#isClosed; place++) {
      const before = this.#told[place];
      const now = rowOf(memory, place);
      if (place === own || now.life === before.life) continue;
      this.#told[place] = now;
      // Others may have had the place in between: of them nothing is told.
      const isAnother = now.life >>> 2 !== before.life >>> 2;
      if (isMember(before.life)) {
        const ended = isAnother ? now.last : now.life & 3;
        this.#say(ended === PlaceState.DEAD ? 'death' : 'leave', { place, pid: before.pid });
      }
      if (!isMember(now.life) || this.#isClosed) continue;
      this.#watchOver(now.pid);
      this.#say('join', { place, pid: now.pid });
    }
  }

  #say(event: MemberEvent, member: Member): void {
    try {
      this.#tell(event, member);
    } catch (error) {
      // Here the addon calls: an error would be lost, and the sleep that follows.
      process.nextTick(() => {
        throw error;
      });
    }
  }
}
