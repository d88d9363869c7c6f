/**
 * A small get travels with the message that completes its epoch, as a put does by `aggregate`, and the target's
 * processor answers it. It takes as many messages in a row as a read behind its post, so it pays where adapters take
 * long to answer a read (figure D10.3).
 */
import { scheduleKind } from './schedule-kind.ts';

export const aggregateGets = scheduleKind({ name: 'aggregate-gets', folds: 'gets' });
