import { useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useRef, useState } from 'react';
import type { StudySource } from '@/api/studies';
import { PermittedButton, useDenied } from '@/components/permission';

const SaveAsStudyDialog = lazy(() => import('./SaveAsStudyDialog'));

/** A button that creates a study from runs; a dialog shows the study before anything is started. */
export function SaveAsStudy({ source, refusal }: { source: StudySource; refusal?: string | undefined }) {
  const denied = useDenied() ?? refusal;
  const navigate = useNavigate();
  const opener = useRef<HTMLButtonElement>(null);
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <PermittedButton ref={opener} variant="default" denied={denied} onClick={() => setIsOpen(true)}>
        Save as study
      </PermittedButton>
      {isOpen && (
        <Suspense fallback={null}>
          <SaveAsStudyDialog
            source={source}
            onClose={() => {
              setIsOpen(false);
              opener.current?.focus();
            }}
            onStarted={(studyId) => void navigate({ to: '/studies/$studyId', params: { studyId } })}
          />
        </Suspense>
      )}
    </>
  );
}
