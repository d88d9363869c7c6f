/** Prints the provider that was asked for, and what programs that this rank starts would find of its job. */
import { init } from 'onesided';

const provider = process.env['ONESIDED_PROVIDER'] ?? '';
const world = await init();
const left = ['ONESIDED_CONTROL_FD', 'ONESIDED_RANK', 'ONESIDED_SIZE'].filter(
  (name) => process.env[name] !== undefined,
);
console.log(JSON.stringify({ rank: world.rank, provider, left }));
await world.finalize();
