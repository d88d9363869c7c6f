/** Nothing is held: a put or get is posted by its call. */
import { scheduleKind } from './schedule-kind.ts';

export const issueOrder = scheduleKind({ name: 'issue-order' });
