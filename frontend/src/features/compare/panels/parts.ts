/** What is loaded with the first panel that is more than a metric, or with the menu that adds panels. */
export { KindItems } from './KindItems';
export { KindPanel } from './KindPanel';
export { PanelDialog } from './PanelDialog';
export { TabDialog } from './TabDialog';
