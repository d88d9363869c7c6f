/** Begins the collective that makes a window, whatever its flavour. */
import type { CollectiveName } from '../../collective/collective-signature.ts';
import { Communicator } from '../../collective/communicator.ts';
import { argumentTypeError, show } from '../../errors.ts';
import type { Job } from '../../job/job.ts';
import type { GeneratorOperation, WaitOptions } from '../../wait/operation.ts';
import { makeWindow } from './make-window.ts';
import { type Offer, readOptions } from './offer.ts';
import type { Flavor, WindowOptions, WindowParts } from './window-parts.ts';

/** A window that the ranks are agreeing on. */
export interface WindowInTheMaking {
  readonly operation: GeneratorOperation<WindowParts>;
  readonly options: WaitOptions;
}

/** The calls that make a window. */
type WindowCall = Extract<CollectiveName, `Window.${string}`>;

/** How many windows without a name a rank has made: mostly, all ranks of a window give it the same number. */
const windowsMade = new WeakMap<Job, number>();

function nextName(job: Job): string {
  const count = (windowsMade.get(job) ?? 0) + 1;
  windowsMade.set(job, count);
  return `#${count}`;
}

/** Refuses a call that would block a thread on which other ranks run. */
export function refuseSync(comm: Communicator, call: string): void {
  if (Communicator.is(comm)) comm.job.refuseSync(call);
}

/** @param makeOffer what this rank brings in; what it throws, the others are told */
export function beginWindow(
  comm: Communicator,
  call: WindowCall,
  flavor: Flavor,
  options: WindowOptions | undefined,
  makeOffer: (given: WindowOptions) => Offer,
): WindowInTheMaking {
  if (!Communicator.is(comm)) {
    throw argumentTypeError(
      `${call}: the first argument must be a communicator, such as the result of init(), not ${show(comm)}`,
      'ERR_COMM',
    );
  }
  const refusal = comm.refusal(call);
  if (refusal !== undefined) throw refusal;
  let given: WindowOptions = {};
  let offer: Offer | undefined;
  let wrong: unknown;
  try {
    given = readOptions(call, options);
    offer = makeOffer(given);
  } catch (error) {
    wrong = error;
  }
  const name = given.name ?? nextName(comm.job);
  return {
    operation: comm.begin(makeWindow({ comm, call, flavor, name }, offer, wrong), call, { name: call }),
    options: offer === undefined ? {} : { signal: given.signal, timeout: given.timeout },
  };
}
