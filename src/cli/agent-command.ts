/** `onesided agent`: what `onesided run --hosts` starts on each host; it is not for people. */
import { runAgent } from '../launcher/hosts/agent.ts';
import { type Command, UsageError } from './command.ts';

export const agent: Command = {
  summary: 'start the ranks of a host for "onesided run --hosts", which speaks to it',
  usage: 'Usage: onesided agent\n\n"onesided run --hosts" starts this command on each host.',

  run(args) {
    if (process.stdin.isTTY) throw new UsageError('"onesided run --hosts" starts this command; it is not for people');
    if (args.length > 0) throw new UsageError(`agent takes no arguments, not '${args[0]}'`);
    return runAgent();
  },
};
