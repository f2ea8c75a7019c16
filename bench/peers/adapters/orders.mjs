// The same as orders.py, for peers that run on Node.
import { createInterface } from "node:readline";

export async function serve(make) {
  let peer = await make(process.argv[2]);
  const own = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1000; };
  const spent = () => (peer.cpu_ms ?? own)();
  const write = (line) => process.stdout.write(JSON.stringify(line) + "\n");
  write({ ready: true, pid: peer.pid });
  for await (const line of createInterface({ input: process.stdin })) {
    const order = JSON.parse(line);
    if (order.do === "reopen") {
      await peer.close?.();
      peer = await make(order.with[0]);
      write({ answer: null });
      continue;
    }
    const cpu = spent(), wall = performance.now();
    const answer = await peer[order.do](...order.with);
    write({ answer, cpu_ms: spent() - cpu, wall_ms: performance.now() - wall, all_cpu_ms: spent() });
  }
  process.exit(0);
}
