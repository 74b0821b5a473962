export const mine = async () => ({});
