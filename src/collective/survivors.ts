/**
 * What the ranks of a communicator can still do when some have failed: say who has, agree, and so find out who goes on.
 * Its messages have a space of their own, which no collective that ended early has left anything in; its waits end for
 * nobody's failure but this rank's own.
 */
import { argumentTypeError, show } from '../errors.ts';
import type { Job } from '../job/job.ts';
import { Members } from '../job/members.ts';
import { GeneratorOperation, type Operation } from '../wait/operation.ts';
import { makeChannel } from './channels.ts';
import { type Agreed, type Agreeing, Agreement } from './failure-agreement.ts';
import type { Group } from './group.ts';

export class Survivors {
  /** This rank alone: its waits go on, whoever else fails. */
  readonly members: Members;
  readonly #job: Job;
  readonly #group: Group;
  readonly #name: string;
  readonly #agreeing: Agreeing;
  #sequence = 0;
  /** One whose wait has ended early: the next call goes on with it. */
  #left: AgreementOperation | undefined;

  /** @param space of messages, this one's own */
  constructor(job: Job, group: Group, space: number, name: string) {
    this.#job = job;
    this.#group = group;
    this.#name = name;
    this.members = new Members(job, [job.rank]);
    const ranks = group.worldRanks;
    this.#agreeing = {
      channel: makeChannel(job, group, space),
      isGone: (rank) => rank !== group.rank && job.failures.isGone(ranks[rank]),
    };
  }

  /** Ranks of the group that are known to have failed. */
  get failed(): number[] {
    const { worldRanks, rank: me } = this.#group;
    this.members.failure();
    return worldRanks.flatMap((worldRank, rank) =>
      rank !== me && this.#job.failures.hasFailed(worldRank) ? rank : [],
    );
  }

  /** An agreement whose wait has ended early. */
  get leftOver(): Operation | undefined {
    return this.#left;
  }

  /** An agreement, to be waited for; one that was left goes on. @param number what this rank proposes */
  agreement(call: string, flags: number, number: number): Operation & { readonly result: Agreed } {
    if (this.#left === undefined) {
      const agreement = new Agreement(this.#agreeing, this.#sequence++, flags, number);
      this.#left = new AgreementOperation(this.members, agreement, `${call} of ${this.#name}`, () => {
        this.#left = undefined;
      });
    }
    return this.#left;
  }
}

class AgreementOperation implements Operation {
  readonly #members: Members;
  readonly #agreement: Agreement;
  readonly #steps: GeneratorOperation<Agreed>;
  readonly #what: string;
  readonly #over: () => void;

  constructor(members: Members, agreement: Agreement, what: string, over: () => void) {
    this.#members = members;
    this.#agreement = agreement;
    this.#steps = new GeneratorOperation(agreement.steps(), what);
    this.#what = what;
    this.#over = over;
  }

  advance(): boolean {
    // Reads the news of failures, if there are any.
    this.#members.failure();
    if (!this.#steps.advance()) return false;
    this.#over();
    return true;
  }

  get result(): Agreed {
    return this.#steps.result;
  }

  describe(): string {
    const { awaited } = this.#agreement;
    return awaited < 0 ? this.#what : `${this.#what} (waiting for rank ${awaited})`;
  }
}

/** What `agree` takes: a number of 32 bits, or a boolean. */
export function readFlag(flag: unknown): number {
  if (typeof flag === 'boolean') return flag ? -1 : 0;
  if (typeof flag === 'number' && Number.isInteger(flag) && flag >= -(2 ** 31) && flag < 2 ** 32) return flag | 0;
  throw argumentTypeError(`agree: flag must be a boolean or a whole number of 32 bits, not ${show(flag)}`);
}
