/** A process with a broker and ports, without the addon: it must end by itself. */
import { Broker } from '../../../src/providers/emulator/thread-fabric.ts';

process.env['ONESIDED_NO_ADDON'] = '1';
const broker = new Broker();
for (let member = 0; member < 4; member++) broker.connect(member);
console.log('connected');
