// SPDX-License-Identifier: Apache-2.0
// Style sheets are imported so that the bundler finds them.
declare module "*.css";
