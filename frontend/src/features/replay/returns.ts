/**
 * What V should have said at each decision: R_t = r_t + gamma * R_{t+1}, of rewards clipped as the learner
 * clips them. The episode's end is taken as the end of all reward.
 */
export function discounted(rewards: ArrayLike<number>, gamma: number, clip: number | null): Float64Array {
  const returns = new Float64Array(rewards.length);
  let total = 0;
  for (let t = rewards.length - 1; t >= 0; t -= 1) {
    const reward = rewards[t] ?? 0;
    const learned = clip === null ? reward : Math.max(-clip, Math.min(clip, reward));
    total = learned + gamma * total;
    returns[t] = total;
  }
  return returns;
}
